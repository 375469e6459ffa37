package offsite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
)

// diary is a store with a copy, on a clock that the test sets.
type diary struct {
	*outsider
	now    atomic.Int64 // hours since the begin
	begin  time.Time
	clone  varve.CloneOptions
	clones int
}

// text is what is purged. It is short enough not to be compressed.
const text = "Zq7-secret-vK2"

// newDiary returns a store that has sent four days: at the begin of each, a snapshot. The memories are "a" from the
// first day on, "secret" from the second day on, "other" from the third day on.
func newDiary(t *testing.T, sealed bool) *diary {
	t.Helper()
	d := &diary{outsider: newOutsider(t), begin: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	d.check(d.st.Close())
	d.o.Clock = func() time.Time { return d.begin.Add(time.Duration(d.now.Load()) * time.Hour) }
	d.check(os.RemoveAll(filepath.Join(d.dir, "store")))
	identity, err := age.GenerateX25519Identity()
	d.check(err)
	d.o.SealRemote = func(keys []string) (func(io.Writer) (io.WriteCloser, error), error) {
		r, err := age.ParseX25519Recipient(keys[0])
		return func(w io.Writer) (io.WriteCloser, error) { return age.Encrypt(w, r) }, err
	}
	d.open()
	d.put("a", "one")
	if sealed {
		signer, err := d.st.Admin().Offsite().AddSealed(t.Context(), d.remote, d.url, []string{identity.Recipient().String()})
		d.check(err)
		d.clone.Signers = []string{signer}
		d.clone.Unseal = func(r io.ReaderAt, size int64) (io.ReaderAt, int64, error) {
			return age.DecryptReaderAt(r, size, identity)
		}
	} else {
		d.check(d.st.Admin().Offsite().Add(t.Context(), d.remote, d.url))
	}
	for day, id := range []string{"", "secret", "other", "last"} {
		d.now.Store(int64(25 * day))
		d.send()
		switch {
		case id == "secret":
			d.put(id, text)
		case id != "":
			d.put(id, "text of "+id)
		}
		d.now.Add(1)
		d.put("a", "changed in the day")
		d.send()
	}
	d.now.Add(1)
	return d
}

func (d *diary) send() {
	d.t.Helper()
	d.check(d.st.Admin().Offsite().Send(d.t.Context(), d.remote))
}

func (d *diary) purge(id string) {
	d.t.Helper()
	_, err := d.st.Admin().Purge(d.t.Context(), id)
	d.check(err)
}

func (d *diary) state() varve.CopyPurge {
	d.t.Helper()
	p, err := d.st.Admin().Offsite().Purged(d.t.Context())
	d.check(err)
	return p
}

// has reports whether a file below a folder has the text that is purged.
func (d *diary) has(folder string) (found bool) {
	d.t.Helper()
	d.check(filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || bytes.Contains(b, []byte(text))
		return err
	}))
	return found
}

// moments clones each hour of the copy, and compares which memories there are; the purged ones must be in none. It
// returns the first hour that can be cloned.
func (d *diary) moments(purged ...string) (first int) {
	d.t.Helper()
	first = -1
	for _, hour := range []int{0, 1, 25, 26, 50, 51, 75, 76} {
		at := d.begin.Add(time.Duration(hour) * time.Hour).Add(time.Minute)
		d.clones++
		to := filepath.Join(d.dir, "clone"+string(rune('a'+d.clones)))
		o := d.clone
		o.At, o.Options = at, &varve.Options{NoBackground: true, StateDir: d.o.StateDir}
		_, err := varve.Clone(d.t.Context(), d.remote, to, &o)
		if errors.Is(err, varve.ErrNotFound) && first < 0 {
			continue
		}
		d.check(err)
		if first < 0 {
			first = hour
		}
		if d.has(to) {
			d.t.Errorf("hour %d: the clone has what was purged", hour)
		}
		got := files(d.t, to)
		for i, id := range []string{"a", "secret", "other", "last"} {
			want := hour >= 25*i
			for _, p := range purged {
				want = want && p != id
			}
			if _, is := got[filepath.Join("memories", id+".json")]; is != want {
				d.t.Errorf("hour %d: memory %s: %v, want %v", hour, id, is, want)
			}
		}
		d.check(os.RemoveAll(to))
	}
	return first
}

// TestPurgeReachesTheCopy: a purge waits for others, for a day. Then nothing of what was purged is in the copy or in a
// clone of any moment, and only those moments are lost that were named before.
func TestPurgeReachesTheCopy(t *testing.T) {
	for name, sealed := range map[string]bool{"plain": false, "sealed": true} {
		t.Run(name, func(t *testing.T) {
			d, ctx := newDiary(t, sealed), t.Context()
			place := filepath.Join(d.dir, "remote")
			if !sealed && !d.has(place) {
				t.Fatal("the test cannot see what is purged")
			}
			of := d.st.Admin().Offsite()
			if loss, err := of.PurgeLoses(ctx, d.remote, []string{"secret", "other"}, nil); err != nil || !loss.From.IsZero() {
				t.Errorf("%+v, %v", loss, err)
			}
			all := varve.CopyLoss{From: d.begin, To: d.o.Clock()}
			if loss, err := of.PurgeLoses(ctx, d.remote, []string{"a"}, nil); err != nil || loss != all {
				t.Errorf("%+v, want %+v, %v", loss, all, err)
			}
			if loss, err := of.PurgeLoses(ctx, d.remote, nil, nil); err != nil || loss != all {
				t.Errorf("%+v, want %+v, %v", loss, all, err)
			}
			if p := d.state(); p.Pending || !p.Due.IsZero() {
				t.Fatalf("%+v", p)
			}
			d.purge("secret")
			d.send()
			first := d.state().Due
			d.now.Add(10)
			d.purge("other")
			d.send()
			if p := d.state(); !p.Pending || p.URL != d.url || !p.Due.Equal(first) {
				t.Fatalf("%+v, the first: %v", p, first)
			}
			d.now.Add(15)
			d.send()
			if p := d.state(); p.Pending {
				t.Fatalf("%+v", p)
			}
			if d.has(place) {
				t.Error("the copy has what was purged")
			}
			r, err := of.Open(ctx, d.remote, nil)
			d.check(err)
			v, err := remote.Verify(ctx, r, true)
			if err != nil || len(v.Damage) > 0 || !v.Restorable {
				t.Errorf("%+v, %v", v, err)
			}
			if hour := d.moments("secret", "other"); hour != 0 {
				t.Errorf("moments are lost before hour %d", hour)
			}
			d.purge("a")
			d.check(of.PurgeNow(ctx, d.remote))
			if p := d.state(); p.Pending {
				t.Fatalf("%+v", p)
			}
			list, err := d.remote.Snapshots(ctx)
			if err != nil || len(list) != 1 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// redact puts "secret" again, and redacts its first version.
func (d *diary) redact() {
	d.t.Helper()
	version := uint64(0)
	for v, err := range d.st.History(d.t.Context(), "secret") {
		d.check(err)
		version = v.LSN
		break
	}
	d.put("secret", "another text")
	_, err := d.st.Admin().PurgeVersion(d.t.Context(), "secret", version)
	d.check(err)
}

func (d *diary) overwrite() {
	d.t.Helper()
	_, err := d.st.Admin().OverwriteRedacted(d.t.Context())
	d.check(err)
}

// purgeNow brings the purges to the copy.
func (d *diary) purgeNow() {
	d.t.Helper()
	d.check(d.st.Admin().Offsite().PurgeNow(d.t.Context(), d.remote))
	if p := d.state(); p.Pending {
		d.t.Fatalf("%+v", p)
	}
}

// TestPurgesWithNothingBetween: two purges, or a purge and the overwriting of a redacted version, between which nothing
// is written, reach the copy one after the other or together. Only the snapshots that have something of what was purged
// are dropped: each moment before can still be cloned.
func TestPurgesWithNothingBetween(t *testing.T) {
	for name, c := range map[string]struct {
		steps  func(d *diary)
		purged []string
	}{
		"a version, erased after a purge": {func(d *diary) {
			d.redact()
			d.purge("other")
			d.purgeNow()
			d.overwrite()
		}, []string{"secret", "other"}},
		"a version, erased after a purge that waits": {func(d *diary) {
			d.redact()
			d.purge("other")
			d.send()
			d.overwrite()
		}, []string{"secret", "other"}},
		"a version, erased after a purge, then another purge": {func(d *diary) {
			d.redact()
			d.purge("other")
			d.purgeNow()
			d.overwrite()
			d.purge("last")
		}, []string{"secret", "other", "last"}},
		"a purge after a version": {func(d *diary) {
			d.redact()
			d.overwrite()
			d.purgeNow()
			d.purge("other")
		}, []string{"secret", "other"}},
		"a purge after a version that waits": {func(d *diary) {
			d.redact()
			d.overwrite()
			d.purge("other")
		}, []string{"secret", "other"}},
		"a purge after a purge": {func(d *diary) {
			d.purge("secret")
			d.purgeNow()
			d.purge("other")
		}, []string{"secret", "other"}},
		"a purge of what has a redacted version": {func(d *diary) {
			d.redact()
			d.purge("secret")
		}, []string{"secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDiary(t, false)
			place := filepath.Join(d.dir, "remote")
			if !d.has(place) {
				t.Fatal("the test cannot see what is purged")
			}
			c.steps(d)
			loss, err := d.st.Admin().Offsite().PurgeLoses(t.Context(), d.remote, []string{"last"}, nil)
			if err != nil || !loss.From.IsZero() {
				t.Errorf("one more purge would lose %+v, %v", loss, err)
			}
			d.purgeNow()
			if d.has(place) || d.has(filepath.Join(d.dir, "store")) {
				t.Error("the store or the copy has what was purged")
			}
			if hour := d.moments(c.purged...); hour != 0 {
				t.Errorf("moments are lost before hour %d", hour)
			}
		})
	}
}

// TestPurgeAfterARedaction: a purge of what has a redacted version, before that was overwritten, erases the version.
// Later purges of other memories drop no snapshots because of it.
func TestPurgeAfterARedaction(t *testing.T) {
	d := newDiary(t, false)
	d.redact()
	d.purge("secret")
	d.purgeNow()
	d.now.Add(25)
	d.put("late", "text of late")
	d.send() // a snapshot, which "late" is in
	before, err := d.remote.Snapshots(t.Context())
	d.check(err)
	d.now.Add(1)
	d.put("later", "text of later")
	d.purge("later")
	d.purgeNow()
	after, err := d.remote.Snapshots(t.Context())
	d.check(err)
	if len(after) != len(before)+1 {
		t.Errorf("%d snapshots, there were %d", len(after), len(before))
	}
	if hour := d.moments("secret"); hour != 0 {
		t.Errorf("moments are lost before hour %d", hour)
	}
}

// failing is a place of which one call fails, or meets something else that a test does.
type failing struct {
	remote.Remote
	do func(call func() error) error
}

var errFailing = errors.New("the place failed")

// newFailing returns a place whose n-th call fails, before or after it is done. n is the number of calls that are left.
func newFailing(r remote.Remote, n *int, after bool) *failing {
	return &failing{r, func(call func() error) error {
		*n--
		if *n != 0 {
			return call()
		}
		if after {
			_ = call()
		}
		return errFailing
	}}
}

func (f *failing) Head(ctx context.Context) (p remote.Position, err error) {
	err = f.do(func() error { p, err = f.Remote.Head(ctx); return err })
	return p, err
}

func (f *failing) Begin(ctx context.Context, a *remote.Anchor) (n uint64, err error) {
	err = f.do(func() error { n, err = f.Remote.Begin(ctx, a); return err })
	return n, err
}

func (f *failing) Append(ctx context.Context, p *remote.Piece) error {
	return f.do(func() error { return f.Remote.Append(ctx, p) })
}

func (f *failing) Save(ctx context.Context, s *remote.Snapshot, body io.Reader) error {
	return f.do(func() error { return f.Remote.Save(ctx, s, body) })
}

func (f *failing) Epochs(ctx context.Context) (list []remote.Epoch, err error) {
	err = f.do(func() error { list, err = f.Remote.Epochs(ctx); return err })
	return list, err
}

func (f *failing) Snapshots(ctx context.Context) (list []remote.Snapshot, err error) {
	err = f.do(func() error { list, err = f.Remote.Snapshots(ctx); return err })
	return list, err
}

func (f *failing) Prune(ctx context.Context, epoch uint64, before segment.LSN) (n int, err error) {
	err = f.do(func() error { n, err = f.Remote.Prune(ctx, epoch, before); return err })
	return n, err
}

func (f *failing) Drop(ctx context.Context, id uuid.UUID) error {
	return f.do(func() error { return f.Remote.Drop(ctx, id) })
}

func (f *failing) Open(ctx context.Context, id uuid.UUID) (b remote.Body, err error) {
	err = f.do(func() error { b, err = f.Remote.Open(ctx, id); return err })
	return b, err
}

func (f *failing) Read(ctx context.Context, epoch uint64, from segment.LSN) iter.Seq2[remote.Piece, error] {
	return func(yield func(remote.Piece, error) bool) {
		for p, err := range f.Remote.Read(ctx, epoch, from) {
			if derr := f.do(func() error { return err }); !yield(p, derr) || derr != nil {
				return
			}
		}
	}
}

// TestPurgeFailsAtEachStep: whichever call of the place fails, done or not, that is an error which says that the copy
// still has what was purged, and the next attempt completes the purge, from another process.
func TestPurgeFailsAtEachStep(t *testing.T) {
	steps := 0
	for step, failed := 1, true; failed; step++ {
		failed = false
		for _, after := range []bool{false, true} {
			d, ctx := newDiary(t, false), t.Context()
			d.purge("secret")
			n := step
			err := d.st.Admin().Offsite().PurgeNow(ctx, newFailing(d.remote, &n, after))
			var left *varve.CopyPurgeError
			switch {
			case n > 0 || err == nil: // it was not called, or everything was removed before
				d.check(err)
				failed = failed || n <= 0
			case !errors.As(err, &left) || !errors.Is(err, errFailing) || !d.state().Pending:
				t.Fatalf("step %d: %v, %+v", step, err, d.state())
			default:
				steps, failed = step, true
				d.check(d.st.Close())
				d.open()
				d.check(d.st.Admin().Offsite().PurgeNow(ctx, d.remote))
			}
			if d.state().Pending || d.has(filepath.Join(d.dir, "remote")) {
				t.Fatalf("step %d: the copy has what was purged", step)
			}
			if v, err := remote.Verify(ctx, d.remote, true); err != nil || len(v.Damage) > 0 || !v.Restorable {
				t.Fatalf("step %d: %+v, %v", step, v, err)
			}
			d.check(d.st.Close())
		}
	}
	if steps < 10 {
		t.Errorf("only %d steps", steps)
	}
}

// TestPurgeOfAPlaceThatIsAway: that is an error; the purge is completed when the place is back.
func TestPurgeOfAPlaceThatIsAway(t *testing.T) {
	d, ctx := newDiary(t, false), t.Context()
	d.purge("secret")
	place := filepath.Join(d.dir, "remote")
	d.check(os.Rename(place, place+".away"))
	var left *varve.CopyPurgeError
	if err := d.st.Admin().Offsite().PurgeNow(ctx, d.remote); !errors.As(err, &left) {
		t.Fatal(err)
	}
	d.check(os.Rename(place+".away", place))
	d.send() // it was asked for: nothing waits any more
	if d.state().Pending || d.has(place) {
		t.Errorf("%+v", d.state())
	}
	if hour := d.moments("secret"); hour != 0 {
		t.Errorf("moments are lost before hour %d", hour)
	}
}

// TestPurgeByTheProcessThatSends: PurgeNow waits until the process that sends has done it.
func TestPurgeByTheProcessThatSends(t *testing.T) {
	d, ctx := newDiary(t, false), t.Context()
	st := d.sends(vfs.OS(), nil)
	d.until("a process sends", func() bool { return d.st.Health(ctx).Copy.Sending })
	d.purge("secret")
	d.put("b", "two")
	d.until("the second memory is sent", func() bool { return d.behind() == 0 })
	if !d.state().Pending {
		t.Fatal("a purge does not wait for others")
	}
	d.check(d.st.Admin().Offsite().PurgeNow(ctx, d.remote))
	if d.state().Pending || d.has(filepath.Join(d.dir, "remote")) {
		t.Errorf("%+v", d.state())
	}
	d.check(st.Close())
}

// TestTakeWhilePurgesGather: the copy that has what was purged can be taken, and has it no more.
func TestTakeWhilePurgesGather(t *testing.T) {
	d, ctx := newDiary(t, false), t.Context()
	d.purge("secret")
	d.send()
	d.check(d.st.Close())
	d.check(varve.Take(ctx, filepath.Join(d.dir, "store"), d.remote, d.url, false, d.o))
	if d.has(filepath.Join(d.dir, "remote")) {
		t.Error("the copy has what was purged")
	}
	if hour := d.moments("secret"); hour != 0 {
		t.Errorf("moments are lost before hour %d", hour)
	}
}
