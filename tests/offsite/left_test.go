package offsite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// TestKilledFork: the folder beside the new store that a killed clone of a moment has left is removed by the next one
// into the same folder. One that a process uses stays, and what a user has there, too.
func TestKilledFork(t *testing.T) {
	x := newOutsider(t)
	ctx := t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	to := filepath.Join(x.dir, "fork")
	steps := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(x.dir, "*.clone"))
		x.check(err)
		return names
	}
	mine := filepath.Join(x.dir, "fork.0123456789abcdef.clone")
	x.check(os.Mkdir(mine, 0o700))
	x.check(os.WriteFile(filepath.Join(mine, "photo.jpg"), []byte("mine"), 0o600))
	step, away := "", filepath.Join(x.dir, "away")
	fork := func(progress func()) {
		t.Helper()
		_, err := varve.Clone(ctx, x.remote, to, &varve.CloneOptions{Fork: true, Options: x.o,
			Progress: func(int64, int64) { progress() }})
		x.check(err)
		x.check(os.RemoveAll(to))
	}
	fork(func() {
		if step != "" {
			return
		}
		for _, name := range steps() {
			if name != mine {
				step = name
			}
		}
		x.check(os.CopyFS(away, os.DirFS(step))) // as it is when the process is killed now
	})
	if list := steps(); len(list) != 1 {
		t.Fatalf("a clone has left %v", list)
	}
	x.check(os.Rename(away, step))
	beside := false
	fork(func() {
		if _, err := os.Stat(step); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what a killed process has left stays: %v", err)
		}
		if beside {
			return
		}
		beside = true
		before := len(steps())
		_, err := varve.Clone(ctx, x.remote, to, &varve.CloneOptions{Fork: true, Options: x.o})
		if x.check(err); len(steps()) != before {
			t.Errorf("a clone beside another one: %v", steps())
		}
		x.check(os.RemoveAll(to))
	})
	if list := steps(); len(list) != 1 || list[0] != mine {
		t.Errorf("left: %v", list)
	}
}

// TestKilledClone: what a killed clone has left in the new folder opens as no store, and is named by the next clone.
func TestKilledClone(t *testing.T) {
	x := newOutsider(t)
	ctx := t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	to, away := filepath.Join(x.dir, "clone"), filepath.Join(x.dir, "away", "clone")
	o := &varve.CloneOptions{Options: x.o, Progress: func(int64, int64) {
		if _, err := os.Stat(away); err != nil {
			x.check(os.CopyFS(away, os.DirFS(to)))
		}
	}}
	_, err := varve.Clone(ctx, x.remote, to, o)
	x.check(err)
	_, err = varve.Clone(ctx, x.remote, away, o)
	for _, err := range []error{err, func() error {
		_, err := varve.Open(ctx, away, x.o)
		return err
	}()} {
		if !errors.Is(err, varve.ErrInvalid) || !strings.Contains(err.Error(), "killed") ||
			!strings.Contains(err.Error(), "remove ") {
			t.Error(err)
		}
	}
}
