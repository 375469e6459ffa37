package repairs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// repairTogether repairs a store of edited and new files, with a callback for each adoption, and returns
// the error of the repair.
func repairTogether(t *testing.T, e *fixture.Editing, n int,
	heard func(ctx context.Context, stop func(), ev varve.Event)) error {
	t.Helper()
	for i := range n {
		e.Edit(fmt.Sprint("k", i), "was", "is")
		e.Save(fmt.Sprint("new", i), fmt.Sprintf(`{"id":"new%d","content":"made %d"}`, i, i))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	plan, err := varve.PlanRepair(ctx, e.Dir, &varve.Options{NoBackground: true, Listener: func(ev varve.Event) {
		if ev.Kind == varve.EventAdopted {
			heard(ctx, stop, ev)
		}
	}}, varve.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = plan.Apply(ctx)
	return err
}

// What another process writes while a repair adopts files stays.
func TestRepairBesideWriter(t *testing.T) {
	t.Parallel()
	e := fixture.NewEditing(t, 3, &varve.Options{CacheBytes: -1})
	err := repairTogether(t, e, 3, func(ctx context.Context, _ func(), ev varve.Event) {
		if ev.ID == "k1" {
			if _, err := e.St.Put(ctx, varve.Memory{ID: "k1", Content: "by another"}); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Want("k1", "by another")
	if err := e.St.Close(); err != nil {
		t.Fatal(err)
	}
	e.St = fixture.Open(t, e.Dir, nil)
	e.Want("k1", "by another")
}

// A repair that is killed after the commit of many adoptions does not adopt any file twice when it is
// run again.
func TestRepairCutAmidAdoptions(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"k0", "new0", "other"} {
		t.Run(id, func(t *testing.T) {
			const n = 5
			e := fixture.NewEditing(t, n, &varve.Options{CacheBytes: -1})
			if err := e.St.Close(); err != nil {
				t.Fatal(err)
			}
			e.Save("under another name", `{"id":"other","content":"made"}`)
			cut := filepath.Join(t.TempDir(), "cut")
			err := repairTogether(t, e, n, func(_ context.Context, _ func(), ev varve.Event) {
				if ev.ID == id {
					copyStore(t, cut, e.Dir)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			become(t, e.Dir, cut)
			for range 2 { // the second time there is nothing to do
				plan, err := varve.PlanRepair(t.Context(), e.Dir, nil, varve.VerifyOptions{})
				if err == nil {
					_, err = plan.Apply(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			e.St = fixture.Open(t, e.Dir, &varve.Options{NoBackground: true, CacheBytes: -1})
			if c, err := e.St.Count(t.Context()); c != 2*n+1 || err != nil {
				t.Errorf("%d memories, %v", c, err)
			}
			e.Want("other", "made")
			for i := range n {
				e.Want(fmt.Sprint("k", i), fmt.Sprint("is ", i))
				e.Want(fmt.Sprint("new", i), fmt.Sprint("made ", i))
				versions := 0
				for _, err := range e.St.History(t.Context(), fmt.Sprint("k", i)) {
					if versions++; err != nil {
						t.Error(err)
					}
				}
				if versions != 2 {
					t.Errorf("k%d has %d versions", i, versions)
				}
			}
		})
	}
}

// become replaces the content of a store's folder by that of a copy: after a reboot that is the same
// store, while a copy of the folder is not.
func become(t *testing.T, dir, copied string) {
	t.Helper()
	for _, step := range []struct {
		in string
		do func(name string) error
	}{
		{dir, func(name string) error { return os.RemoveAll(filepath.Join(dir, name)) }},
		{copied, func(name string) error { return os.Rename(filepath.Join(copied, name), filepath.Join(dir, name)) }},
	} {
		names, err := os.ReadDir(step.in)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range names {
			if err := step.do(d.Name()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// copyStore copies a store that a process has open, in the state that it would have after a reboot.
func copyStore(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) (result error) {
		if err != nil {
			return err
		}
		defer func() { // the next segment gets its name meanwhile
			if errors.Is(result, fs.ErrNotExist) && strings.HasSuffix(name, ".new") {
				result = nil
			}
		}()
		rel, _ := filepath.Rel(from, name)
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case rel == "wal/shared":
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, rel), b, 0o600); err != nil {
			return err
		}
		return os.Chtimes(filepath.Join(to, rel), info.ModTime(), info.ModTime())
	})
	if err != nil {
		t.Fatal(err)
	}
}
