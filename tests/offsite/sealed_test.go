package offsite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sealed"
)

// identities are the identities of the recipients of a sealed copy.
type identities []*age.X25519Identity

func newIdentities(t testing.TB, n int) (ids identities) {
	t.Helper()
	for range n {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// recipients returns the public keys.
func (ids identities) recipients() (list []string) {
	for _, id := range ids {
		list = append(list, id.Recipient().String())
	}
	return list
}

// unseal opens what is sealed for one of the identities.
func (ids identities) unseal(b io.ReaderAt, size int64) (io.ReaderAt, int64, error) {
	var list []age.Identity
	for _, id := range ids {
		list = append(list, id)
	}
	return age.DecryptReaderAt(b, size, list...)
}

// seal is Options.SealRemote.
func seal(recipients []string) (func(io.Writer) (io.WriteCloser, error), error) {
	list, err := age.ParseRecipients(strings.NewReader(strings.Join(recipients, "\n")))
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) (io.WriteCloser, error) { return age.Encrypt(w, list...) }, nil
}

// seals opens the store again with the ability to seal.
func (x *outsider) seals() {
	x.t.Helper()
	x.check(x.st.Close())
	x.o.SealRemote = seal
	x.open()
}

// claiming is a place that claims a newer end of the copy than its pieces have.
type claiming struct {
	remote.Remote
	epoch, position uint64
}

func (c *claiming) Head(ctx context.Context) (remote.Position, error) {
	p, err := c.Remote.Head(ctx)
	p.Number += 100
	p.Epoch += c.epoch
	p.At.LSN += c.position
	return p, err
}

// TestKnownIsProven: the place of a sealed copy says where the copy ends, and nothing signs that. A clone that is to
// have a position has it in signed pieces, whatever the place claims.
func TestKnownIsProven(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.seals()
	ids := newIdentities(t, 2)
	x.put("a", "one")
	signer, err := x.st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, ids.recipients())
	x.check(err)
	earlier := filepath.Join(x.dir, "earlier")
	x.check(os.CopyFS(earlier, os.DirFS(filepath.Join(x.dir, "remote"))))
	at := time.Now()
	x.put("b", "two")
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	head, _, err := x.st.Admin().Offsite().Behind(ctx, x.remote)
	x.check(err)
	known := sealed.Known{Epoch: head.Epoch, Position: head.At.LSN}.String()
	back, err := varve.OpenFolder(ctx, "file://"+earlier)
	x.check(err)
	n := 0
	clone := func(r remote.Remote, at time.Time) error {
		n++
		_, err := varve.Clone(ctx, r, filepath.Join(x.dir, fmt.Sprint("clone", n)), &varve.CloneOptions{At: at,
			Unseal: ids[:1].unseal, Signers: []string{signer}, Known: known, Options: x.o})
		return err
	}
	x.check(clone(x.remote, time.Time{}))
	x.check(clone(x.remote, at))
	var older *sealed.OlderError
	for _, r := range []remote.Remote{back, &claiming{back, 0, 1 << 20}, &claiming{back, 5, 0}} {
		for _, at := range []time.Time{{}, at} {
			if err := clone(r, at); !errors.As(err, &older) {
				t.Errorf("%T at %v: a clone of an older state: %v", r, at, err)
			}
		}
	}

	// A moment of an epoch before the one of the position: that the copy had the position is proven by another one.
	_, err = x.st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, ids[:1].recipients())
	x.check(err)
	head, _, err = x.st.Admin().Offsite().Behind(ctx, x.remote)
	x.check(err)
	known = sealed.Known{Epoch: head.Epoch, Position: head.At.LSN}.String()
	x.check(clone(x.remote, at))
	x.check(clone(x.remote, time.Time{}))
	for _, r := range []remote.Remote{back, &claiming{back, 5, 0}} {
		if err := clone(r, at); !errors.As(err, &older) {
			t.Errorf("%T: a clone of an older state: %v", r, err)
		}
	}
}

// TestTakeOfASealedCopyWithoutKeys: a store without the keys of a sealed copy never begins it again in plain text, not
// even when its newest entry is damaged, which any keeper of the place can do.
func TestTakeOfASealedCopyWithoutKeys(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.seals()
	x.put("a", "classified")
	_, err := x.st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, newIdentities(t, 2).recipients())
	x.check(err)
	x.put("b", "classified as well")
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	x.check(x.st.Admin().Offsite().Remove(ctx)) // the keys, too
	x.check(x.st.Close())
	store := filepath.Join(x.dir, "store")
	names := x.entries()
	last := names[len(names)-1]
	b, err := os.ReadFile(last)
	x.check(err)
	b[100] ^= 1 // in its head
	x.check(os.Chmod(last, 0o600))
	x.check(os.WriteFile(last, b, 0o600))
	for _, discard := range []bool{false, true} {
		if err := varve.Take(ctx, store, x.remote, x.url, discard, x.o); err == nil {
			t.Errorf("discard=%v: a store without keys has taken a sealed copy", discard)
		} else {
			t.Log(err)
		}
	}
	hiddenBelow(t, filepath.Join(x.dir, "remote"), "classified")
}

// hiddenBelow verifies that no file of a folder contains a text.
func hiddenBelow(t testing.TB, folder string, texts ...string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		for _, s := range texts {
			if strings.Contains(string(b), s) {
				t.Errorf("%s has %q", name, s)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// after is a file system that calls a function once after a file was put in place of a name with a suffix.
type after struct {
	vfs.FS
	suffix string
	do     func()
}

func (a *after) Rename(old, to string) error {
	err := a.FS.Rename(old, to)
	if do := a.do; do != nil && strings.HasSuffix(to, a.suffix) {
		a.do = nil
		do()
	}
	return err
}

// TestKeysVanish: another process forgets the keys while a sealed copy is begun. The copy is refused, not begun in
// plain text.
func TestKeysVanish(t *testing.T) {
	for _, suffix := range []string{".keys.json", ".binding.json", ".place.json"} {
		x, ctx := newOutsider(t), t.Context()
		x.seals()
		x.put("a", "classified")
		x.check(x.st.Close())
		fsys := &after{FS: vfs.OS(), suffix: suffix, do: func() {
			names, err := filepath.Glob(filepath.Join(x.dir, "state", "copies", "*.keys.json"))
			x.check(err)
			for _, name := range names {
				x.check(os.Remove(name))
			}
		}}
		o := *x.o
		st, err := varve.Open(ctx, filepath.Join(x.dir, "store"), storetest.In(&o, storetest.Environment{
			System: vfs.System{FS: fsys}}))
		x.check(err)
		_, err = st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, newIdentities(t, 2).recipients())
		x.check(st.Close())
		t.Log(suffix, err)
		if err == nil && suffix != ".place.json" { // then they were read, and what is sent is sealed
			t.Errorf("%s: a sealed copy without its keys", suffix)
		}
		hiddenBelow(t, filepath.Join(x.dir, "remote"), "classified")
	}
}

// TestRecipientsChangeBesideSend: the recipients change while another process sends. What it sends is for the
// recipients before; then an epoch for the new ones begins.
func TestRecipientsChangeBesideSend(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	var during func()
	x.check(x.st.Close())
	x.o.LockWait = 10 * time.Millisecond
	x.o.SealRemote = func(list []string) (func(io.Writer) (io.WriteCloser, error), error) {
		if do := during; do != nil {
			during = nil
			do()
		}
		return seal(list)
	}
	x.open()
	ids := newIdentities(t, 2)
	x.put("a", "one")
	signer, err := x.st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, ids[:1].recipients())
	x.check(err)
	x.put("b", "two")
	o := *x.o
	o.SealRemote = seal
	during = func() { // the keys were read
		st, err := varve.Open(ctx, filepath.Join(x.dir, "store"), &o)
		x.check(err)
		_, err = st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, ids[1:].recipients())
		x.check(errors.Join(err, st.Close()))
	}
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	x.put("c", "for the new recipient")
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	clone := func(name string, ids identities) error {
		_, err := varve.Clone(ctx, x.remote, filepath.Join(x.dir, name), &varve.CloneOptions{Unseal: ids.unseal,
			Signers: []string{signer}, Options: x.o})
		return err
	}
	if err := clone("before", ids[:1]); err == nil {
		t.Error("the recipient before can read what was sent after the change")
	}
	x.check(clone("after", ids[1:]))
}

// TestRecipientsArePending: recipients that were recorded, and to whom nothing was sent yet, are called pending.
func TestRecipientsArePending(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.seals()
	ids := newIdentities(t, 2)
	_, err := x.st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, ids[:1].recipients())
	x.check(err)
	pending := func(want bool) {
		t.Helper()
		keys, err := x.st.Admin().Offsite().Keys()
		if x.check(err); keys.Pending != want {
			t.Errorf("pending %v, want %v: %+v", keys.Pending, want, keys)
		}
	}
	pending(false)
	places := storetest.Inner(x.st).Places()
	k, err := places.Keys()
	x.check(err)
	k.Recipients = ids[1:].recipients()
	x.check(places.SaveKeys(k))
	pending(true)
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	pending(false)
}

// TestRecipientsChangeIsCutShort: the command that changes the recipients is killed after it has recorded them, before
// it tells the process that sends. That process notices.
func TestRecipientsChangeIsCutShort(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.seals()
	ids := newIdentities(t, 2)
	x.put("a", "one")
	signer, err := x.st.Admin().Offsite().AddSealed(ctx, x.remote, x.url, ids[:1].recipients())
	x.check(err)
	x.check(x.st.Close())
	x.st = x.sends(vfs.OS(), nil)
	x.until("a process sends", func() bool { return x.st.Health(ctx).Copy.Sending })
	places := storetest.Inner(x.st).Places()
	k, err := places.Keys()
	x.check(err)
	k.Recipients = ids[1:].recipients()
	x.check(places.SaveKeys(k))
	x.put("b", "for the new recipient")
	// Until an epoch is begun for the new recipient, the copy is not called sealed for that one.
	x.until("the new recipient is no longer pending", func() bool {
		keys, err := x.st.Admin().Offsite().Keys()
		x.check(err)
		return !keys.Pending
	})
	n := 0
	x.until("the new recipient can clone", func() bool {
		n++
		_, err := varve.Clone(ctx, x.remote, filepath.Join(x.dir, fmt.Sprint("clone", n)), &varve.CloneOptions{
			Unseal: ids[1:].unseal, Signers: []string{signer}, Options: x.o})
		return err == nil
	})
}
