package offsite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote/sender"
)

// fast is a sleep of at most a hundredth of the time, so that pauses of minutes pass within a test.
func fast(ctx context.Context, d time.Duration) error { return vfs.Sleep(ctx, d/100) }

// watched is a file system that counts the files that were written at the place of names with a suffix, and refuses to
// read those below a folder while that is set.
type watched struct {
	vfs.FS
	suffix string
	writes atomic.Int64
	locked atomic.Pointer[string]
}

func (w *watched) Rename(old, to string) error {
	if strings.HasSuffix(to, w.suffix) {
		w.writes.Add(1)
	}
	return w.FS.Rename(old, to)
}

func (w *watched) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if folder := w.locked.Load(); folder != nil && strings.HasPrefix(name, *folder) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return w.FS.OpenFile(name, flag, perm)
}

// sends opens the store with a goroutine that sends, on a machine with a file system, whose pauses are short.
func (x *outsider) sends(fsys vfs.FS, more func(*varve.Options)) *varve.Store {
	x.t.Helper()
	o := *x.o
	o.NoBackground, o.Remote = false, varve.OpenFolder
	if more != nil {
		more(&o)
	}
	st, err := varve.Open(x.t.Context(), filepath.Join(x.dir, "store"),
		storetest.In(&o, storetest.Environment{System: vfs.System{FS: fsys, Sleep: fast}}))
	x.check(err)
	x.t.Cleanup(func() { _ = st.Close() })
	return st
}

// until waits until f is true.
func (x *outsider) until(what string, f func() bool) {
	x.t.Helper()
	for began := time.Now(); !f(); {
		if time.Since(began) > 30*time.Second {
			x.t.Fatalf("not within 30 s: %s", what)
		}
		x.check(vfs.Sleep(x.t.Context(), time.Millisecond))
	}
}

func (x *outsider) behind() uint64 {
	x.t.Helper()
	_, n, err := x.st.Admin().Offsite().Behind(x.t.Context(), x.remote)
	if err != nil {
		return 1
	}
	return n
}

// TestWrongDiskForAMoment: while another disk, with the copy of nothing, is mounted at the place, nothing is sent, and
// that is shown; when the right one is back, sending continues by itself.
func TestWrongDiskForAMoment(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(x.st.Close())
	right, wrong := filepath.Join(x.dir, "remote"), filepath.Join(x.dir, "wrong")
	_, err := varve.CreateFolder(ctx, "file://"+wrong)
	x.check(err)
	x.check(os.Rename(right, right+".away"))
	x.check(os.Rename(wrong, right))
	x.st = x.sends(vfs.OS(), nil)
	x.until("the wrong disk is noticed", func() bool {
		return strings.Contains(x.st.Health(ctx).Copy.LastErr, "right disk")
	})
	x.put("b", "two")
	x.check(os.Rename(right, wrong))
	x.check(os.Rename(right+".away", right))
	x.until("sending works again", func() bool { return x.behind() == 0 })
	x.until("and is shown to work", func() bool { h := x.st.Health(ctx).Copy; return h.LastErr == "" && h.Sending })
}

// TestStatusIsNotWrittenAnew: a sender that has nothing to send does not write to the disk all the time.
func TestStatusIsNotWrittenAnew(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(x.st.Close())
	w := &watched{FS: vfs.OS(), suffix: ".status.json"}
	x.st = x.sends(w, nil)
	x.until("a process sends", func() bool { return x.st.Health(ctx).Copy.Sending })
	x.put("b", "two")
	x.until("it is sent", func() bool { return x.behind() == 0 })
	before := w.writes.Load()
	for range 50 { // looks of the sender at its place
		x.check(vfs.Sleep(ctx, 20*time.Millisecond))
	}
	if n := w.writes.Load() - before; n > 3 { // one says that all is sent
		t.Errorf("the status was written %d times", n)
	}
	x.check(x.st.Close())
	o := *x.o
	o.ReadOnly = true
	st, err := varve.Open(ctx, filepath.Join(x.dir, "store"), &o)
	x.check(err)
	defer st.Close()
	if h := st.Health(ctx).Copy; h.Sending || h.Success.IsZero() {
		t.Errorf("%+v", h)
	}
}

// TestUnreadableState: a user whose state cannot be read has no copy as long as none follows the store, and is told
// once, not each minute, that it cannot be known where the copy is.
func TestUnreadableState(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Close())
	w := &watched{FS: vfs.OS()}
	locked := filepath.Join(x.o.StateDir, "copies")
	w.locked.Store(&locked)
	var text syncBuffer
	logged := func(o *varve.Options) { o.Logger = slog.New(slog.NewTextHandler(&text, nil)) }
	x.st = x.sends(w, logged)
	for range 30 {
		if h := x.st.Health(ctx); h.Copy.Follows || h.Copy.LastErr != "" {
			t.Fatalf("a copy that never was: %+v", h.Copy)
		}
		x.check(vfs.Sleep(ctx, 10*time.Millisecond))
	}
	x.check(x.st.Close())
	if s := text.String(); strings.Contains(s, "copy") {
		t.Fatal(s)
	}
	x.open()
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(x.st.Close())
	x.st = x.sends(w, logged)
	x.until("the state cannot be read", func() bool { return strings.Contains(text.String(), "not sent to its copy") })
	for range 150 { // more than two pauses of a minute
		x.check(vfs.Sleep(ctx, 10*time.Millisecond))
	}
	if s := text.String(); strings.Count(s, "not sent to its copy") != 1 {
		t.Fatal(s)
	}
}

// TestTakenCopyHoldsNothing: the archive of a store whose copy was taken by another machine keeps nothing for it.
func TestTakenCopyHoldsNothing(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(varve.Take(ctx, x.cloned(), x.remote, x.url, false, x.o))
	x.check(x.st.Close())
	x.st = x.sends(vfs.OS(), nil)
	x.until("the sender stops", func() bool { return strings.Contains(x.st.Health(ctx).Copy.LastErr, "taken over") })
	x.until("wal/sent is removed", func() bool {
		_, err := os.Stat(filepath.Join(x.dir, "store", "wal", "sent"))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// TestPlaceOfASecondUser: the log is kept for one copy. A second user cannot add another one; of two users who have
// both added one, the first to send has it, and the other one is told so.
func TestPlaceOfASecondUser(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	second := *x.o
	second.StateDir = filepath.Join(x.dir, "second")
	st2, err := varve.Open(ctx, filepath.Join(x.dir, "store"), &second)
	x.check(err)
	defer st2.Close()
	url := "file://" + filepath.Join(x.dir, "remote2")
	r2, err := varve.CreateFolder(ctx, url)
	x.check(err)
	var other *varve.OtherCopyError
	if err := st2.Admin().Offsite().Add(ctx, r2, url); !errors.As(err, &other) || !errors.Is(err, varve.ErrInvalid) {
		t.Fatal("the log is sent to two copies, and the archive keeps it for one of them:", err)
	}
	if _, err := st2.Admin().Offsite().Place(ctx); !errors.Is(err, varve.ErrNotFound) {
		t.Error("the refused copy was recorded:", err)
	}
	// The first user adds a copy whose place is away, so nothing is recorded in the store: the second user adds a copy.
	sent := filepath.Join(x.dir, "store", "wal", "sent")
	x.check(os.Remove(sent))
	x.check(st2.Admin().Offsite().Add(ctx, r2, url))
	var claimed *sender.ClaimedError
	if err := x.st.Admin().Offsite().Send(ctx, x.remote); !errors.As(err, &claimed) {
		t.Error("both users send:", err)
	}
	x.check(x.st.Close())
	x.st = x.sends(vfs.OS(), nil)
	x.until("the first user is told", func() bool {
		h := x.st.Health(ctx)
		return !h.OK && !h.Copy.Sending && strings.Contains(h.Copy.LastErr, "another user")
	})
	x.put("b", "two")
	x.check(st2.Admin().Offsite().Send(ctx, r2)) // the process of the first user does not hold it up
	// The first user forgets the copy: the record of the second user's copy stays.
	first := x.st.Admin().Offsite()
	x.check(first.Remove(ctx))
	if _, err := os.Stat(sent); err != nil {
		t.Error(err)
	}
	if err := first.Add(ctx, x.remote, x.url); !errors.As(err, &other) {
		t.Error("a copy is added beside the second user's:", err)
	}
	// The second user forgets the copy, and the first one adds one.
	x.check(st2.Admin().Offsite().Remove(ctx))
	if _, err := os.Stat(sent); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	url3 := "file://" + filepath.Join(x.dir, "remote3")
	r3, err := varve.CreateFolder(ctx, url3)
	x.check(err)
	x.check(first.Add(ctx, r3, url3))
	x.until("the first user sends", func() bool { return x.st.Health(ctx).Copy.Sending })
	if h := st2.Health(ctx).Copy; h.Sending {
		t.Errorf("%+v", h)
	}
}

// TestTakenCopyOfASecondUser: a copy that was taken by another machine does not end the copy that another user of the
// store has added since. Its record in wal/sent stays when a process finds that the first copy was taken, and when its
// user takes that copy back.
func TestTakenCopyOfASecondUser(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(varve.Take(ctx, x.cloned(), x.remote, x.url, false, x.o))
	x.check(x.st.Close())
	store := filepath.Join(x.dir, "store")
	sent := filepath.Join(store, "wal", "sent")
	run := func() {
		t.Helper()
		// The status may be that of the previous process; the log is written after the sender has ended.
		var text syncBuffer
		x.st = x.sends(vfs.OS(), func(o *varve.Options) { o.Logger = slog.New(slog.NewTextHandler(&text, nil)) })
		x.until("the sender stops", func() bool { return strings.Contains(text.String(), "taken over") })
		x.check(x.st.Close())
	}
	run()
	if _, err := os.Stat(sent); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	second := *x.o
	second.StateDir = filepath.Join(x.dir, "second")
	st2, err := varve.Open(ctx, store, &second)
	x.check(err)
	defer st2.Close()
	url := "file://" + filepath.Join(x.dir, "remote2")
	r2, err := varve.CreateFolder(ctx, url)
	x.check(err)
	x.check(st2.Admin().Offsite().Add(ctx, r2, url))
	before, err := os.ReadFile(sent)
	x.check(err)
	stays := func(what string) {
		t.Helper()
		if b, err := os.ReadFile(sent); err != nil || !bytes.Equal(b, before) {
			t.Errorf("%s: the record of the second user's copy: %x, %v; it was %x", what, b, err, before)
		}
	}
	run()
	stays("a copy that was taken")
	first, err := x.place(store)
	x.check(err)
	var other *varve.OtherCopyError
	if err := varve.Take(ctx, store, x.remote, x.url, true, x.o); !errors.As(err, &other) {
		t.Error("the copy is taken back beside the second user's:", err)
	}
	stays("a take that was refused")
	if p, err := x.place(store); err != nil || p != first {
		t.Errorf("a take that was refused has changed the place: %+v, %v; it was %+v", p, err, first)
	}
	x.check(st2.Admin().Offsite().Remove(ctx))
	x.check(varve.Take(ctx, store, x.remote, x.url, true, x.o))
}

// TestCopyTakenByASecondUser: a user of a shared store takes the copy that another user of the same store has added. A
// process of the first user finds that the copy was taken, and leaves wal/sent, which is now the second user's.
func TestCopyTakenByASecondUser(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(x.st.Close())
	store := filepath.Join(x.dir, "store")
	sent := filepath.Join(store, "wal", "sent")
	second := *x.o
	second.StateDir = filepath.Join(x.dir, "second")
	x.check(varve.Take(ctx, store, x.remote, x.url, false, &second))
	before, err := os.ReadFile(sent)
	x.check(err)
	stays := func(what string) {
		t.Helper()
		if b, err := os.ReadFile(sent); err != nil || !bytes.Equal(b, before) {
			t.Errorf("%s: the record of the second user's copy: %x, %v; it was %x", what, b, err, before)
		}
	}
	var text syncBuffer
	x.st = x.sends(vfs.OS(), func(o *varve.Options) { o.Logger = slog.New(slog.NewTextHandler(&text, nil)) })
	x.until("the sender stops", func() bool { return strings.Contains(text.String(), "taken over") })
	x.check(x.st.Close())
	stays("a process of the first user")
	x.open()
	x.check(x.st.Admin().Offsite().Remove(ctx))
	stays("the first user forgets the copy")
	url := "file://" + filepath.Join(x.dir, "remote2")
	r2, err := varve.CreateFolder(ctx, url)
	x.check(err)
	var other *varve.OtherCopyError
	if err := x.st.Admin().Offsite().Add(ctx, r2, url); !errors.As(err, &other) {
		t.Error("a copy is added beside the second user's:", err)
	}
	x.check(x.st.Close())
	st2, err := varve.Open(ctx, store, &second)
	x.check(err)
	x.check(st2.Admin().Offsite().Send(ctx, x.remote))
	x.check(st2.Close())
	// The first user takes the copy back. A take that is killed before it has removed the record of the second user is
	// completed by the next process that sends.
	w := &unremoved{FS: vfs.OS(), path: sent}
	o := *x.o
	broken := storetest.In(&o, storetest.Environment{System: vfs.System{FS: w}})
	err = varve.Take(ctx, store, x.remote, x.url, false, broken)
	if !errors.Is(err, errFailing) {
		t.Fatal(err)
	}
	stays("a take that failed half way")
	x.open()
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	head, err := x.remote.Head(ctx)
	if now, rerr := os.ReadFile(sent); err != nil || rerr != nil || head.Epoch != 3 || bytes.Equal(now, before) {
		t.Errorf("epoch %d, wal/sent %x, %v, %v", head.Epoch, now, err, rerr)
	}
}

// unremoved is a file system that does not remove one file.
type unremoved struct {
	vfs.FS
	path string
}

func (u *unremoved) Remove(name string) error {
	if name == u.path {
		return &fs.PathError{Op: "remove", Path: name, Err: errFailing}
	}
	return u.FS.Remove(name)
}

// syncBuffer is a buffer that goroutines write to.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds to the buffer.
func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
