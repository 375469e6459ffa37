package wrap

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// A hook that refuses after the fact must not leave a descriptor behind.
func TestRefusedOpenIsClosed(t *testing.T) {
	d := crash.New()
	p := d.Process("x")
	fsys := New(p, func(op *Op, call func() error) error {
		call()
		return fs.ErrInvalid
	})
	if _, err := fsys.OpenFile("/a", os.O_CREATE|os.O_RDWR, 0o600); !errors.Is(err, fs.ErrInvalid) {
		t.Fatal(err)
	}
	f, err := p.OpenFile("/a", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := f.Lease(); !ok || err != nil {
		t.Fatal("somebody still has it open", err)
	}
	if _, err := fsys.OpenLock("/l", 0o600); !errors.Is(err, fs.ErrInvalid) {
		t.Fatal(err)
	}
	if ok, err := fsys.OpenLock("/none/l", 0o600); ok != nil || err == nil {
		t.Fatal(ok, err)
	}
}

func TestKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range kinds {
		if k.String() == "" || seen[k.String()] {
			t.Errorf("kind %d is called %q", k, k)
		}
		seen[k.String()] = true
		if k.Syncs() && !k.Changes() {
			t.Errorf("%v syncs and does not change", k)
		}
	}
}

func TestRelative(t *testing.T) {
	op := &Op{Path: "/store/a/b", To: `/store\c`}
	if p, to := op.Relative("/store"); p != "a/b" || to != "c" {
		t.Fatal(p, to)
	}
	op = &Op{Path: "/store"}
	if p, to := op.Relative("/store"); p != "." || to != "" {
		t.Fatal(p, to)
	}
}

var _ vfs.FS = (*FS)(nil)
