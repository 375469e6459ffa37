package varve

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/jsondoc"
)

// A folder of few files that is emptied at once is an accident as that of many is, and its files are
// put back, also where no process watched; a part of them, and a single one, is deleted.
func TestEmptiedSmallFolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all, gone int
		deleted   bool
	}{{1, 1, true}, {2, 1, true}, {2, 2, false}, {3, 2, true}, {3, 3, false}, {4, 4, false}, {8, 4, true}, {9, 5, false}, {20, 5, true}} {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprint(c.gone, " of ", c.all, " watched ", watched), func(t *testing.T) {
				t.Parallel()
				var told []Event
				e := edited(t, c.all, &Options{CacheBytes: -1, Listener: func(ev Event) {
					if ev.Kind == EventDeleted || ev.Kind == EventDrift {
						told = append(told, ev)
					}
				}})
				var ids []string
				for i := range c.gone {
					ids = append(ids, fmt.Sprint("k", i))
					must(t, os.Remove(e.path(ids[i])))
				}
				if watched {
					e.settle(ids...)
				} else {
					must(t, e.unwatched())
				}
				for _, id := range ids {
					_, err := e.st.Get(t.Context(), id)
					_, serr := os.Stat(e.path(id))
					if c.deleted && (!errors.Is(err, ErrNotFound) || serr == nil) || !c.deleted && (err != nil || serr != nil) {
						t.Errorf("%s: %v, %v", id, err, serr)
					}
				}
				if want := map[bool]int{true: c.gone, false: 1}[c.deleted]; len(told) != want {
					t.Errorf("told: %+v", told)
				}
				for _, ev := range told {
					if ev.Kind == EventDeleted && ev.Note != "" {
						t.Errorf("the log has it, and told was %q", ev.Note)
					}
				}
			})
		}
	}
}

// unwatched is what a read does that misses a file, where no process watches.
func (e *editing) unwatched() error {
	k := e.st.inner.Engine.Kinds().Memories
	past := e.st.inner.Engine.Env().Clock().Add(-time.Hour)
	if err := os.Chtimes(k.Path(""), past, past); err != nil {
		return err
	}
	for id, err := range e.st.inner.Engine.IDs(e.t.Context(), k, engine.Filters{Expired: true}) {
		if err != nil {
			return err
		}
		if _, err := k.Stat(jsondoc.FileName(id)); errors.Is(err, os.ErrNotExist) {
			_, err := e.st.inner.Adopter.JudgeEdit(e.t.Context(), k, id)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			return nil
		}
	}
	return nil
}
