package offsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	copies "github.com/varve-db/varve/internal/copy/offsite"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sender"
)

// hooked is a remote that calls a function once after it has returned its newest entry, and whose Begin fails while
// broken is set.
type hooked struct {
	remote.Remote
	after  func()
	broken error
}

func (h *hooked) Head(ctx context.Context) (remote.Position, error) {
	p, err := h.Remote.Head(ctx)
	if f := h.after; f != nil {
		h.after = nil
		f()
	}
	return p, err
}

func (h *hooked) Begin(ctx context.Context, a *remote.Anchor) (uint64, error) {
	if h.broken != nil {
		return 0, h.broken
	}
	return h.Remote.Begin(ctx, a)
}

// cloned returns the folder of a clone of the store's copy.
func (x *outsider) cloned() string {
	x.t.Helper()
	to := filepath.Join(x.dir, "clone")
	_, err := varve.Clone(x.t.Context(), x.remote, to, &varve.CloneOptions{URL: x.url, Options: x.o})
	x.check(err)
	return to
}

// place returns the place of the store in a folder.
func (x *outsider) place(dir string) (varve.Place, error) {
	x.t.Helper()
	o := *x.o
	o.ReadOnly = true
	st, err := varve.Open(x.t.Context(), dir, &o)
	x.check(err)
	defer st.Close()
	return st.Admin().Offsite().Place(x.t.Context())
}

// TestTakeBesideAnotherSender: what the machine of the store sends between the look at the copy and the new epoch is
// not superseded: the take is refused, and everything is as before.
func TestTakeBesideAnotherSender(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	to := x.cloned()
	h := &hooked{Remote: x.remote, after: func() {
		x.put("b", "sent meanwhile")
		x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	}}
	var ahead *varve.AheadError
	if err := varve.Take(ctx, to, h, x.url, false, x.o); !errors.As(err, &ahead) {
		t.Fatalf("taking a copy to which another machine sends: %v", err)
	} else {
		t.Log(err)
	}
	if p, err := x.place(to); err != nil || !p.Clone || p.URL != x.url {
		t.Fatalf("the clone has forgotten its copy: %+v, %v", p, err)
	}
	x.put("c", "sent afterwards")
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	newest := filepath.Join(x.dir, "newest")
	_, err := varve.Clone(ctx, x.remote, newest, &varve.CloneOptions{Options: x.o})
	x.check(err)
	x.check(x.st.Flush(ctx))
	storetest.SameTexts(t, "documents", files(t, newest), files(t, filepath.Join(x.dir, "store")))
	// with discard, exactly the entries that were examined are superseded, in the end
	h.after = func() {
		x.put("d", "sent meanwhile")
		x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	}
	x.check(varve.Take(ctx, to, h, x.url, true, x.o))
	if err := x.st.Admin().Offsite().Send(ctx, x.remote); err == nil {
		t.Fatal("two machines send")
	}
}

// TestTakeFailsHalfWay: a take that fails when the copy cannot be written keeps the place, and is repeated without
// its URL.
func TestTakeFailsHalfWay(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	to := x.cloned()
	h := &hooked{Remote: x.remote, broken: errors.New("the place is read-only")}
	if err := varve.Take(ctx, to, h, x.url, false, x.o); !errors.Is(err, h.broken) {
		t.Fatal(err)
	}
	p, err := x.place(to)
	if err != nil || p.URL != x.url || !p.Clone {
		t.Fatalf("a take that failed has lost the place: %+v, %v", p, err)
	}
	x.check(varve.Take(ctx, to, x.remote, p.URL, false, x.o))
	if p, err := x.place(to); err != nil || p.Clone {
		t.Fatalf("%+v, %v", p, err)
	}
	// The machine before takes the copy back: when that fails half way, its programs do it when the place works again.
	store := filepath.Join(x.dir, "store")
	x.check(x.st.Close())
	if err := varve.Take(ctx, store, h, x.url, false, x.o); !errors.Is(err, h.broken) {
		t.Fatal(err)
	}
	if p, err := x.place(store); err != nil || p.URL != x.url || p.Clone {
		t.Fatalf("a take that failed has lost the place: %+v, %v", p, err)
	}
	x.open()
	x.put("b", "two")
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	_, behind, err := x.st.Admin().Offsite().Behind(ctx, x.remote)
	if err != nil || behind != 0 {
		t.Fatal(behind, err)
	}
}

// TestRemoveForgets: when a copy is forgotten, the archive no longer keeps the log for it, and nothing says that the
// copy is behind.
func TestRemoveForgets(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	if h := x.st.Health(ctx); !h.Copy.Follows {
		t.Fatalf("%+v", h.Copy)
	}
	x.check(x.st.Admin().Offsite().Remove(ctx))
	if h := x.st.Health(ctx); h.Copy.Follows {
		t.Fatalf("a copy that was forgotten: %+v", h.Copy)
	}
	if _, err := os.Stat(filepath.Join(x.dir, "store", "wal", "sent")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("wal/sent: %v", err)
	}
	if err := x.st.Admin().Offsite().Remove(ctx); !errors.Is(err, varve.ErrNotFound) {
		t.Fatalf("forgetting nothing: %v", err)
	}
}

// TestMovedStore: a store that is moved, within the disk or by copying to another one, says that it is no longer sent,
// and with what command it is sent again. A store that is reached through a link is the same store.
func TestMovedStore(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(x.st.Close())
	store, link := filepath.Join(x.dir, "store"), filepath.Join(x.dir, "link")
	x.check(os.Mkdir(link, 0o700))
	x.check(os.Symlink(x.dir, filepath.Join(link, "above")))
	if p, err := x.place(filepath.Join(link, "above", "store")); err != nil || p.URL != x.url {
		t.Fatalf("through a link: %+v, %v", p, err)
	}
	moved, copied := filepath.Join(x.dir, "moved"), filepath.Join(x.dir, "copied")
	x.check(os.Rename(store, moved))
	var where *copies.MovedStoreError
	x.check(os.CopyFS(copied, os.DirFS(moved)))
	if _, err := x.place(copied); !errors.As(err, &where) { // its first folder is gone
		t.Fatalf("a store that was moved to another disk: %v", err)
	}
	if _, err := x.place(moved); !errors.As(err, &where) {
		t.Fatalf("a moved store: %v", err)
	}
	x.check(os.RemoveAll(copied))
	o := *x.o
	o.ReadOnly = true
	st, err := varve.Open(ctx, moved, &o)
	x.check(err)
	h := st.Health(ctx)
	x.check(st.Close())
	if h.Copy.LastErr != where.Error() {
		t.Fatalf("%+v, not %v", h.Copy, where)
	}
	t.Log(where)
	x.check(varve.Take(ctx, moved, x.remote, x.url, false, x.o))
	if p, err := x.place(moved); err != nil || p.URL != x.url {
		t.Fatalf("%+v, %v", p, err)
	}
	if names, err := filepath.Glob(filepath.Join(x.o.StateDir, "copies", "*.place.json")); err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	// and forgotten where it was moved to
	x.check(os.Rename(moved, store))
	x.open()
	x.check(x.st.Admin().Offsite().Remove(ctx))
	if _, err := x.st.Admin().Offsite().Place(ctx); !errors.Is(err, varve.ErrNotFound) {
		t.Fatal(err)
	}
}

// TestAddInAMovedStore: a copy can be added to a store that was moved or restored in place. It replaces the copy that
// this user had added for the folder before, but not one that another user has added since.
func TestAddInAMovedStore(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	open := func(dir string, o *varve.Options) varve.Offsite {
		t.Helper()
		st, err := varve.Open(ctx, dir, o)
		x.check(err)
		t.Cleanup(func() { _ = st.Close() })
		x.st = st
		return st.Admin().Offsite()
	}
	remotes := 0
	add := func(c varve.Offsite) error {
		t.Helper()
		remotes++
		url := fmt.Sprintf("file://%s%d", filepath.Join(x.dir, "remote"), remotes)
		r, err := varve.CreateFolder(ctx, url)
		x.check(err)
		if err := c.Add(ctx, r, url); err != nil {
			return err
		}
		x.put("n", url)
		return c.Send(ctx, r)
	}
	store, moved, away := filepath.Join(x.dir, "store"), filepath.Join(x.dir, "moved"), filepath.Join(x.dir, "away")
	x.put("a", "one")
	x.check(add(x.st.Admin().Offsite()))
	x.check(x.st.Close())
	x.check(os.Rename(store, moved))
	if err := add(open(moved, x.o)); err != nil {
		t.Fatal("in a moved store:", err)
	}
	x.check(x.st.Close())
	x.check(os.Rename(moved, away))
	x.check(os.CopyFS(moved, os.DirFS(away)))
	if err := add(open(moved, x.o)); err != nil {
		t.Fatal("in a store that was restored in place:", err)
	}
	x.check(x.st.Close())
	x.check(os.RemoveAll(away))
	x.check(os.Rename(moved, store))
	second := *x.o
	second.StateDir = filepath.Join(x.dir, "second")
	c2 := open(store, &second)
	x.check(c2.Remove(ctx)) // the second user forgets the copy of the folder before, and adds one
	x.check(add(c2))
	sent := filepath.Join(store, "wal", "sent")
	before, err := os.ReadFile(sent)
	x.check(err)
	c1 := open(store, x.o)
	var where *copies.MovedStoreError
	if _, err := c1.Place(ctx); !errors.As(err, &where) {
		t.Fatal(err)
	}
	var other *varve.OtherCopyError
	if err := add(c1); !errors.As(err, &other) {
		t.Error("a copy is added beside the second user's:", err)
	}
	if _, err := c1.Place(ctx); !errors.As(err, &where) {
		t.Error("the refused copy has changed the place:", err)
	}
	x.check(c1.Remove(ctx))
	if b, err := os.ReadFile(sent); err != nil || !bytes.Equal(b, before) {
		t.Errorf("the record of the second user's copy: %x, %v; it was %x", b, err, before)
	}
}

// newer is a remote whose newest entry and snapshots are of a format that no program has yet.
type newer struct{ remote.Remote }

func (n newer) Head(ctx context.Context) (remote.Position, error) {
	p, err := n.Remote.Head(ctx)
	p.Format = 99
	return p, err
}

func (n newer) Snapshots(ctx context.Context) ([]remote.Snapshot, error) {
	list, err := n.Remote.Snapshots(ctx)
	for i := range list {
		list[i].Format = 99
	}
	return list, err
}

// TestNewerFormat: a copy that a newer program has written is refused with the number of its format, and with the
// advice to install that program. It is not called sealed.
func TestNewerFormat(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	r := newer{x.remote}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, varve.ErrNewerFormat) || errors.Is(err, varve.ErrSealed) ||
			!strings.Contains(err.Error(), "the format is 99, but this program reads only formats up to 2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	err := x.st.Admin().Offsite().Send(ctx, r)
	refused("send", err)
	if !errors.Is(err, sender.ErrStopped) {
		t.Errorf("send: %v", err)
	}
	_, err = varve.Clone(ctx, r, filepath.Join(x.dir, "clone"), &varve.CloneOptions{Options: x.o})
	refused("clone", err)
	x.check(x.st.Close())
	refused("take", varve.Take(ctx, filepath.Join(x.dir, "store"), r, x.url, false, x.o))
}
