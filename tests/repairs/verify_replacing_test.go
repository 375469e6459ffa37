package repairs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// stepwise is a file system without exchange. placing is called after a file of memories/ has been moved
// away and before its successor is in place.
func stepwise(placing func()) vfs.FS {
	return wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		switch {
		case op.Kind == wrap.Exchange:
			return errors.ErrUnsupported
		case op.Kind == wrap.RenameNew && filepath.Base(filepath.Dir(op.To)) == "memories":
			placing()
		}
		return call()
	})
}

// replaced makes a store with a memory "x" whose next flush replaces its file in steps, and a second
// handle on it.
func replaced(t *testing.T, placing func(), fsys vfs.FS) (other *varve.Store, dir string, next func()) {
	t.Helper()
	ctx := t.Context()
	dir = t.TempDir()
	st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: stepwise(placing)}}))
	other = fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	n := 0
	next = func() {
		n++
		if _, err := st.Put(ctx, varve.Memory{ID: "x", Content: fmt.Sprint("version ", n)}); err != nil {
			t.Error(err)
		}
		if err := st.Flush(ctx); err != nil {
			t.Error(err)
		}
	}
	next()
	return other, dir, next
}

// A flusher is stopped between the two steps of replacing a file: the file is not reported as missing,
// by verify, reads or listings of other processes.
func TestVerifyBesideReplacing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var look func()
	other, dir, next := replaced(t, func() {
		if look != nil {
			look()
		}
	}, nil)
	looks := 0
	look = func() {
		looks++
		if _, err := storetest.Inner(other).Engine.Kinds().Memories.Stat("x.json"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it stands there: %v", err)
		}
		for f, err := range other.Admin().Verify(ctx, varve.VerifyOptions{}) {
			t.Error(f, err)
		}
		if p, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{}); err != nil || len(p.Actions) > 0 {
			t.Errorf("%v %+v", err, p)
		}
		if m, err := other.Get(ctx, "x"); err != nil || m.Content == "" {
			t.Error(err)
		}
	}
	next()
	if looks != 1 {
		t.Fatalf("%d looks", looks)
	}
}

// Another process commits a version and begins to put it in place while the names are compared: verify
// reports nothing.
func TestDriftBesideReplacing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var placing, commit func()
	name := jsondoc.FileName("x")
	looks := 0
	fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) (err error) {
		if commit == nil || op.Kind != wrap.Stat || filepath.Base(op.Path) != name {
			return call()
		}
		run := commit
		commit = nil
		placing = func() { looks++; err = call() }
		run()
		placing = nil
		return err
	})
	other, _, next := replaced(t, func() {
		if placing != nil {
			placing()
		}
	}, fsys)
	if err := storetest.Inner(other).Engine.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
	commit = next
	if storetest.Inner(other).Adopter.ReallyMissing(ctx, storetest.Inner(other).Engine.Kinds().Memories, "x", name) {
		t.Error("it is said to be missing")
	}
	if looks != 1 {
		t.Fatalf("%d looks", looks)
	}
}

// A memory that was deleted keeps its file until the deletion is flushed: verify does not report it as a
// file without entry. A file that is brought back afterwards is reported.
func TestDriftBesideDeletion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "x", Content: "…"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	path := storetest.Inner(st).Engine.Kinds().Memories.Path("x.json")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	if d, err := storetest.Inner(st).Adopter.Drift(ctx,
		storetest.Inner(st).Engine.Kinds().Memories); err != nil || d.Count > 0 {
		t.Errorf("deleted, not flushed: %+v, %v", d, err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, was, 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := storetest.Inner(st).Adopter.Drift(ctx,
		storetest.Inner(st).Engine.Kinds().Memories); err != nil || len(d.Stranger) != 1 {
		t.Errorf("brought back: %+v, %v", d, err)
	}
}
