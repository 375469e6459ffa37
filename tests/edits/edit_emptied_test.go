package edits

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A folder of few files that is emptied at once is an accident as with many files, and its files are
// restored, even if no process was watching; if a part of them, or a single one, is deleted, that is a
// deletion.
func TestEmptiedSmallFolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all, gone int
		deleted   bool
	}{{1, 1, true}, {2, 1, true}, {2, 2, false}, {3, 2, true}, {3, 3, false}, {4, 4, false}, {8, 4, true}, {9, 5, false},
		{20, 5, true}} {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprint(c.gone, " of ", c.all, " watched ", watched), func(t *testing.T) {
				t.Parallel()
				var told []varve.Event
				e := fixture.NewEditing(t, c.all, &varve.Options{CacheBytes: -1, Listener: func(ev varve.Event) {
					if ev.Kind == varve.EventDeleted || ev.Kind == varve.EventDrift {
						told = append(told, ev)
					}
				}})
				var ids []string
				for i := range c.gone {
					ids = append(ids, fmt.Sprint("k", i))
					fixture.Must(t, os.Remove(e.Path(ids[i])))
				}
				if watched {
					e.Settle(ids...)
				} else {
					fixture.Must(t, e.Unwatched())
				}
				for _, id := range ids {
					_, err := e.St.Get(t.Context(), id)
					_, serr := os.Stat(e.Path(id))
					if c.deleted && (!errors.Is(err, varve.ErrNotFound) || serr == nil) || !c.deleted && (err != nil || serr != nil) {
						t.Errorf("%s: %v, %v", id, err, serr)
					}
				}
				if want := map[bool]int{true: c.gone, false: 1}[c.deleted]; len(told) != want {
					t.Errorf("told: %+v", told)
				}
				for _, ev := range told {
					if ev.Kind == varve.EventDeleted && ev.Note != "" {
						t.Errorf("the log has it, and told was %q", ev.Note)
					}
				}
			})
		}
	}
}
