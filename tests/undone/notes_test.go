package undone

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// changeNotes makes one random commit to notes, if what it tries is possible.
func changeNotes(ctx context.Context, st *varve.Store, rng *rand.Rand) error {
	paths := []string{"a.md", "b.md", "d/a.md", "d/b.md", "e/f/a.md"}
	folders := []string{"d", "e", "g", "e/f"}
	path, to := paths[rng.IntN(len(paths))], paths[rng.IntN(len(paths))]
	ns := st.Notes()
	var err error
	switch rng.IntN(8) {
	case 0:
		err = ns.Delete(ctx, path)
	case 1:
		_, err = ns.Rename(ctx, path, to)
	case 2:
		_, err = ns.Rename(ctx, folders[rng.IntN(len(folders))], folders[rng.IntN(len(folders))])
	case 3:
		_, err = ns.SetProperties(ctx, path, varve.NoteProperties{Tags: []string{fmt.Sprint(rng.IntN(5))}})
	case 4:
		_, err = ns.Append(ctx, path, fmt.Appendf(nil, "line %d\n", rng.IntN(1000)))
	case 5:
		_, err = ns.DeleteFolder(ctx, folders[rng.IntN(len(folders))])
	default:
		_, err = ns.Write(ctx, path, []byte(strings.Repeat(fmt.Sprintf("text %d\n", rng.IntN(1000)), rng.IntN(50))))
	}
	if errors.Is(err, varve.ErrNotFound) || errors.Is(err, varve.ErrInvalid) || errors.Is(err, varve.ErrConflict) {
		return nil
	}
	return err
}

// TestUndoNotes: random commits to notes, also those that rename or delete folders, are undone one by one, the newest
// first: each time every note, with its properties and where it was, is as before, and so is its file.
func TestUndoNotes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale(4, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			dir := storeIn(t)
			st := fixture.Open(t, dir, options("a"))
			type step struct {
				at    uint64
				state state
			}
			steps := []step{{0, state{}}}
			for len(steps) < 30 {
				fixture.Must(t, changeNotes(t.Context(), st, rng))
				if at := newest(t, st); at != steps[len(steps)-1].at {
					steps = append(steps, step{at, stateOf(t, st)})
				}
				if rng.IntN(6) == 0 {
					fixture.Must(t, st.Flush(t.Context()))
				}
			}
			for i := len(steps) - 1; i > 0; i-- {
				undo(t, t.Context(), st, varve.UndoOptions{Position: steps[i].at})
				same(t, fmt.Sprint("without step ", i), st, steps[i-1].state)
				if i%7 == 1 {
					fixture.Must(t, st.Flush(t.Context()))
					sameFiles(t, st, dir)
				}
			}
			healthy(t, st)
		})
	}
}

// sameFiles compares the notes with their files.
func sameFiles(t *testing.T, st *varve.Store, dir string) {
	t.Helper()
	for e, err := range st.Notes().List(t.Context(), "", 0) {
		fixture.Must(t, err)
		n, err := st.Notes().Read(t.Context(), e.Path)
		fixture.Must(t, err)
		b, err := os.ReadFile(filepath.Join(dir, "notes", filepath.FromSlash(e.Path)))
		if err != nil || string(b) != string(n.Content) {
			t.Errorf("the file of %s: %q, %v, want %q", e.Path, b, err, n.Content)
		}
	}
}

// TestUndoNotesOfRun: an undo of an agent's run takes back its notes in one call, also behind a rename, and refuses
// where another agent has written since.
func TestUndoNotesOfRun(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, storeIn(t), options("a"))
	ns := st.Notes()
	_, err := ns.Write(as(t, "person"), "plan.md", []byte("by a person\n"))
	fixture.Must(t, err)
	_, err = ns.Write(as(t, "person"), "other.md", []byte("other\n"))
	fixture.Must(t, err)
	before := stateOf(t, st)
	run := as(t, "run")
	_, err = ns.Append(run, "plan.md", []byte("by a run\n"))
	fixture.Must(t, err)
	_, err = ns.Rename(run, "plan.md", "plans/plan.md")
	fixture.Must(t, err)
	_, err = ns.Write(run, "new.md", []byte("new\n"))
	fixture.Must(t, err)
	fixture.Must(t, ns.Delete(run, "other.md"))
	undo(t, t.Context(), st, varve.UndoOptions{Run: "run"})
	same(t, "after the undo", st, before)
	_, err = ns.Append(run, "plan.md", []byte("again\n"))
	fixture.Must(t, err)
	_, err = ns.Append(as(t, "person"), "plan.md", []byte("since\n"))
	fixture.Must(t, err)
	built := stateOf(t, st)
	var conflict *varve.UndoError
	if _, err := st.Undo(t.Context(), varve.UndoOptions{Run: "run"}); !errors.As(err, &conflict) ||
		len(conflict.Plan.Conflicts) == 0 || conflict.Plan.Conflicts[0].ID != "plan.md" ||
		!errors.Is(conflict.Plan.Conflicts[0].Err, varve.ErrBuiltUpon) {
		t.Errorf("%v", err)
	}
	same(t, "after the refused undo", st, built)
	healthy(t, st)
}
