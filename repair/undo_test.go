package repair_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/repair"
)

// files are the bytes of all that a repair may put back.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, dir)), "/")
		if rel == "quarantine" || rel == "tmp" {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && !strings.HasSuffix(rel, ".lock") && rel != "wal/shared" && rel != "wal/owner" {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[rel] = string(bytes.TrimRight(b, "\x00")) // what was written out ahead
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inQuarantine reports whether a file in quarantine has the content b: what an undo leaves is there.
func inQuarantine(t *testing.T, dir, b string) bool {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "quarantine", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(name string) bool {
		content, err := os.ReadFile(name)
		return err == nil && string(content) == b
	})
}

// TestUndo takes back the repair of every kind of damage: it is there again, and
// heals again.
func TestUndo(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for i, h := range harms {
		if i%proofs.Every(5) != 0 {
			continue
		}
		t.Run(strings.ReplaceAll(h.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := closedStore(t)
			before := memories(t, dir)
			h.do(t, dir)
			was := files(t, dir)
			apply(t, planOf(t, dir))
			r, err := varve.UndoRepair(t.Context(), dir, options(), "")
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Undone, r.Left)
			now := files(t, dir)
			for rel, b := range was {
				derived := rel == "checkpoint" || strings.HasPrefix(rel, "wal/0") || strings.HasPrefix(rel, "memory_index") || strings.HasPrefix(rel, "view_index")
				if derived && !slices.Contains(r.Undone, rel) {
					continue // what opening, adopting and flushing write
				}
				if strings.HasSuffix(rel, ".new") {
					continue // opening removes what was left half prepared
				}
				if now[rel] != b && !(len(r.Left) > 0 && inQuarantine(t, dir, b)) {
					t.Errorf("%s is not what it was: %d bytes, %d before", rel, len(now[rel]), len(b))
				}
			}
			if len(r.Left) > 0 {
				return
			}
			p := planOf(t, dir)
			var verbs []repair.Verb
			for _, a := range p.Actions {
				verbs = append(verbs, a.Do)
			}
			want := h.plan
			switch h.name {
			case "bit in the index": // the log has let go what it would have to be read with
				want = []repair.Verb{repair.SetIndexAside}
			case "edited": // the edit is a version that the log knows, by now
				want = []repair.Verb{repair.Restore}
			case "wal deleted": // a log that was made anew stays
				want = []repair.Verb{repair.SetAside}
			case "bit in a memory, no copy", "temp files left":
				want = verbs
			}
			if !slices.Equal(verbs, want) {
				t.Errorf("the plan is %q now, want %q", verbs, want)
			}
			apply(t, p)
			after := memories(t, dir)
			for _, id := range slices.Concat(h.changed, h.extra) {
				before[id] = after[id]
			}
			compare(t, before, after)
		})
	}
}

// TestUndoRefused: what came after the repair is not undone with it.
func TestUndoRefused(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, c := range []struct {
		name   string
		harm   func(t *testing.T, dir string)
		change func(t *testing.T, dir string)
	}{
		{"the memory was written", func(t *testing.T, dir string) { remove(t, file(dir, memoryPath(9))) }, func(t *testing.T, dir string) {
			st := openStore(t, dir, &varve.Options{NoBackground: true})
			if _, err := st.Put(t.Context(), varve.Memory{ID: id(9), Content: "later"}); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		{"the memory was edited", func(t *testing.T, dir string) { remove(t, file(dir, memoryPath(9))) }, func(t *testing.T, dir string) {
			b := bytesOf(t, file(dir, memoryPath(9)))
			write(t, file(dir, memoryPath(9)), bytes.Replace(b, []byte("memory 9 "), []byte("memory nine "), 1))
		}},
		{"what was adopted was written", func(t *testing.T, dir string) {
			b := bytesOf(t, file(dir, memoryPath(9)))
			write(t, file(dir, "memories/new.json"), bytes.Replace(b, []byte(id(9)), []byte("new"), 1))
		}, func(t *testing.T, dir string) {
			st := openStore(t, dir, &varve.Options{NoBackground: true})
			if _, err := st.Put(t.Context(), varve.Memory{ID: "new", Content: "later"}); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		{"the log went on", func(t *testing.T, dir string) {
			name, at := lastFrame(t, dir)
			flip(t, name, at)
		}, func(t *testing.T, dir string) {
			st := openStore(t, dir, &varve.Options{NoBackground: true})
			put(t, st, 1000, 1001)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := closedStore(t)
			c.harm(t, dir)
			apply(t, planOf(t, dir))
			c.change(t, dir)
			was := tree(t, dir)
			_, err := varve.UndoRepair(t.Context(), dir, options(), "")
			var refused *varve.UndoRefused
			if !errors.As(err, &refused) || !errors.Is(err, varve.ErrConflict) || len(refused.Reasons) == 0 {
				t.Fatal(err)
			}
			t.Log(err)
			if now := tree(t, dir); now != was {
				t.Error("something was changed")
			}
		})
	}
	dir := closedStore(t)
	for _, id := range []string{"", "x"} {
		if _, err := varve.UndoRepair(t.Context(), dir, options(), id); !errors.Is(err, errs.ErrNotFound) {
			t.Error(err)
		}
	}
}
