package offsite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	copies "github.com/varve-db/varve/internal/copy/offsite"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
)

// outsider is a store with a copy elsewhere, and the record of what it had.
type outsider struct {
	t      *testing.T
	dir    string // of everything
	o      *varve.Options
	st     *varve.Store
	remote remote.Remote
	url    string
}

func newOutsider(t *testing.T) *outsider {
	x := &outsider{t: t, dir: t.TempDir()}
	x.o = &varve.Options{StateDir: filepath.Join(x.dir, "state"), SegmentSize: 64 << 10, NoBackground: true}
	x.url = "file://" + filepath.Join(x.dir, "remote")
	x.open()
	var err error
	x.remote, err = varve.CreateFolder(t.Context(), x.url)
	x.check(err)
	return x
}

func (x *outsider) check(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *outsider) open() {
	var err error
	x.st, err = varve.Open(x.t.Context(), filepath.Join(x.dir, "store"), x.o)
	x.check(err)
	x.t.Cleanup(func() { _ = x.st.Close() })
}

func (x *outsider) put(id, text string) uint64 {
	x.t.Helper()
	r, err := x.st.Put(x.t.Context(), varve.Memory{ID: id, Content: text})
	x.check(err)
	return r.Version
}

// files returns the documents of a store by path.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []string{"memories", "assemblies", "notes", "working"} {
		_ = filepath.Walk(filepath.Join(dir, folder), func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().IsRegular() {
				b, err := os.ReadFile(path)
				rel, _ := filepath.Rel(dir, path)
				all[rel] = string(b)
				return err
			}
			return nil
		})
	}
	return all
}

// versions returns each version of each memory in the history of a store, by id and version.
func versions(t *testing.T, dir string, o *varve.Options, ids []string) map[string]string {
	t.Helper()
	at := *o
	at.ReadOnly = true
	st, err := varve.Open(context.Background(), dir, &at)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all := map[string]string{}
	for _, id := range ids {
		for v, err := range st.History(context.Background(), id) {
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			all[fmt.Sprintf("%s@%d", id, v.LSN)] = fmt.Sprintf("%+v", v)
		}
	}
	return all
}

func TestCloneEqualsTheStore(t *testing.T) {
	x := newOutsider(t)
	ctx := t.Context()
	var ids []string
	for i := range 40 {
		id := fmt.Sprintf("m%02d", i)
		ids = append(ids, id)
		x.put(id, fmt.Sprintf("text %d of %032d", i, i))
	}
	x.check(x.st.Flush(ctx))
	x.check(x.st.Delete(ctx, "m03"))
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	for i := range 2000 {
		x.put(fmt.Sprintf("m%02d", 5+i%10), fmt.Sprintf("changed %d %0128d", i, i))
	}
	x.check(x.st.Delete(ctx, "m04"))
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	x.check(x.st.Close())
	store, to := filepath.Join(x.dir, "store"), filepath.Join(x.dir, "clone")
	r, err := varve.Clone(ctx, x.remote, to, &varve.CloneOptions{URL: x.url, Options: x.o})
	x.check(err)
	t.Logf("%+v", r)
	storetest.SameTexts(t, "documents", files(t, to), files(t, store))
	storetest.SameTexts(t, "history", versions(t, to, x.o, ids), versions(t, store, x.o, ids))

	// read-only until it takes the copy
	var cloned *varve.ClonedError
	if _, err := varve.Open(ctx, to, x.o); !errors.As(err, &cloned) || !errors.Is(err, varve.ErrPermission) {
		t.Fatalf("opening a clone to write: %v", err)
	}
	x.check(varve.Take(ctx, to, x.remote, x.url, false, x.o))
	st, err := varve.Open(ctx, to, x.o)
	x.check(err)
	defer st.Close()
	_, err = st.Put(ctx, varve.Memory{ID: "new", Content: "of the clone"})
	x.check(err)
	x.check(st.Admin().Offsite().Send(ctx, x.remote))
	// the machine before may not send any more
	x.open()
	x.put("late", "of the first machine")
	if err := x.st.Admin().Offsite().Send(ctx, x.remote); err == nil {
		t.Fatal("two machines send")
	} else {
		t.Log(err)
	}
	// an occupied folder, and the copy of another store
	if _, err := varve.Clone(ctx, x.remote, to, &varve.CloneOptions{Options: x.o}); !errors.Is(err, varve.ErrInvalid) {
		t.Fatalf("cloning into a store: %v", err)
	}
}

// TestTakeOfAnOlderClone: the copy went on for several segments after a clone was made of it, so the log of the clone
// has nothing to compare with. Without being told to, the clone does not take over, because what was sent since would
// be superseded.
func TestTakeOfAnOlderClone(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("first", "text")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	to := filepath.Join(x.dir, "clone")
	_, err := varve.Clone(ctx, x.remote, to, &varve.CloneOptions{URL: x.url, Options: x.o})
	x.check(err)
	for i := range 2000 {
		x.put(fmt.Sprintf("m%02d", i%10), fmt.Sprintf("changed %d %0128d", i, i))
	}
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	x.check(x.st.Close())
	var ahead *varve.AheadError
	if err := varve.Take(ctx, to, x.remote, x.url, false, x.o); !errors.As(err, &ahead) {
		t.Fatalf("taking over the copy with an older state: %v", err)
	}
	_, err = varve.Clone(ctx, x.remote, filepath.Join(x.dir, "newest"), &varve.CloneOptions{URL: x.url, Options: x.o})
	x.check(err)
	storetest.SameTexts(t, "documents", files(t, filepath.Join(x.dir, "newest")), files(t, filepath.Join(x.dir, "store")))
	x.check(varve.Take(ctx, to, x.remote, x.url, true, x.o))
}

func TestCloneAtAMoment(t *testing.T) {
	x := newOutsider(t)
	ctx := t.Context()
	now := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	x.check(x.st.Close())
	x.o.Clock = func() time.Time { now = now.Add(time.Millisecond); return now }
	x.open()
	before := now
	now = now.Add(time.Minute)
	x.put("a", "first")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	type moment struct {
		at    time.Time
		files map[string]string
	}
	var moments []moment
	for i := range 12 {
		x.put("a", fmt.Sprintf("version %d", i))
		x.put(fmt.Sprintf("b%d", i), "there")
		if i > 3 {
			x.check(x.st.Delete(ctx, fmt.Sprintf("b%d", i-3)))
		}
		x.check(x.st.Flush(ctx))
		now = now.Add(time.Minute)
		moments = append(moments, moment{now, files(t, filepath.Join(x.dir, "store"))})
		now = now.Add(time.Minute)
	}
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	for i, m := range moments {
		to := filepath.Join(x.dir, fmt.Sprintf("at%d", i))
		_, err := varve.Clone(ctx, x.remote, to, &varve.CloneOptions{At: m.at, Options: x.o})
		if err != nil {
			t.Fatalf("moment %d: %v", i, err)
		}
		storetest.SameTexts(t, fmt.Sprintf("moment %d", i), files(t, to), m.files)
	}
	_, err := varve.Clone(ctx, x.remote, filepath.Join(x.dir, "early"), &varve.CloneOptions{At: before, Options: x.o})
	if !errors.Is(err, varve.ErrNotFound) {
		t.Fatalf("a moment before the copy: %v", err)
	}
	t.Log(err)
	if names, err := filepath.Glob(filepath.Join(x.dir, "*.clone*")); err != nil || len(names) > 0 {
		t.Fatalf("left over: %v, %v", names, err)
	}
}

// TestCloneAtAWrongClock: the clock of the machine stood in 1970 when an epoch ended, so its moments cannot be found by
// their times. The error says so, and how its last moment is cloned.
func TestCloneAtAWrongClock(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.check(x.st.Close())
	real := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	now := real
	x.o.Clock = func() time.Time { now = now.Add(time.Millisecond); return now }
	x.open()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	now = real.Add(time.Minute)
	x.put("b", "two")
	now = time.Unix(60, 0)
	x.put("c", "in 1970")
	x.check(x.st.Admin().Offsite().Send(ctx, x.remote))
	x.check(x.st.Close())
	now = real.Add(time.Hour)
	x.open()
	x.put("d", "is in the snapshot of the next epoch, but not in this one")
	x.check(x.st.Close())
	x.check(varve.Take(ctx, filepath.Join(x.dir, "store"), x.remote, x.url, false, x.o))
	fork := func(at time.Time) error {
		_, err := varve.Clone(ctx, x.remote, filepath.Join(x.dir, "fork"), &varve.CloneOptions{At: at, Options: x.o})
		return err
	}
	var none *copies.MomentError
	if err := fork(real.Add(2 * time.Minute)); !errors.As(err, &none) || none.Wrong.Number != 1 ||
		none.Wrong.Ended.Year() != 1970 || !strings.Contains(err.Error(), "clock of the machine was set back") {
		t.Fatalf("%+v, %v", none, err)
	}
	x.check(fork(none.Wrong.Ended))
	if got := files(t, filepath.Join(x.dir, "fork")); len(got) != 3 {
		t.Errorf("as the error says: %v", got)
	}
}

// TestCopiedFolder: neither a copied folder of a store nor one that replaces the store sends anything: what the machine
// remembers is bound to the folder whose log was sent.
func TestCopiedFolder(t *testing.T) {
	x := newOutsider(t)
	ctx := t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	x.check(x.st.Close())
	store, copied := filepath.Join(x.dir, "store"), filepath.Join(x.dir, "copied")
	x.check(os.CopyFS(copied, os.DirFS(store)))
	place := func(dir string) error {
		st, err := varve.Open(ctx, dir, x.o)
		x.check(err)
		defer st.Close()
		_, err = st.Admin().Offsite().Place(ctx)
		return err
	}
	if err := place(copied); !errors.Is(err, varve.ErrNotFound) {
		t.Fatalf("a copied folder has a place: %v", err)
	}
	st, err := varve.Open(ctx, copied, x.o)
	x.check(err)
	url := "file://" + filepath.Join(x.dir, "remote2")
	second, err := varve.CreateFolder(ctx, url)
	x.check(err)
	var other *varve.OtherCopyError
	if err := st.Admin().Offsite().Add(ctx, second, url); !errors.As(err, &other) {
		t.Fatalf("the copied folder has the record of another copy: %v", err)
	}
	x.check(st.Admin().Offsite().Remove(ctx)) // as the error says
	x.check(st.Admin().Offsite().Add(ctx, second, url))
	x.check(st.Admin().Offsite().Remove(ctx))
	x.check(st.Close())
	x.check(os.Rename(store, store+".old"))
	x.check(os.Rename(copied, store))
	if err := place(store); !errors.Is(err, varve.ErrInvalid) {
		t.Fatalf("a folder in the place of another has its place: %v", err)
	}
}

// lastSync is a file system that refuses to sync the folder of a clone once its mark of an unfinished folder is
// removed.
type lastSync struct {
	vfs.FS
	folder string
	marked bool
}

func (l *lastSync) Remove(name string) error {
	err := l.FS.Remove(name)
	if name == filepath.Join(l.folder, vfs.MarkName) && err == nil {
		l.marked = true
	}
	return err
}

var errSync = errors.New("the disk refuses")

func (l *lastSync) SyncDir(name string) error {
	if l.marked && name == l.folder {
		l.marked = false
		return errSync
	}
	return l.FS.SyncDir(name)
}

// TestCloneFailsAtItsLastSync: the folder, which was complete, is removed, and no read-only store stays. The clone can
// be made again.
func TestCloneFailsAtItsLastSync(t *testing.T) {
	x, ctx := newOutsider(t), t.Context()
	x.put("a", "one")
	x.check(x.st.Admin().Offsite().Add(ctx, x.remote, x.url))
	to := filepath.Join(x.dir, "clone")
	o := storetest.In(x.o, storetest.Environment{System: vfs.System{FS: &lastSync{FS: vfs.OS(), folder: to}}})
	_, err := varve.Clone(ctx, x.remote, to, &varve.CloneOptions{Options: o})
	if !errors.Is(err, errSync) {
		t.Fatal(err)
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	_, err = varve.Clone(ctx, x.remote, to, &varve.CloneOptions{Options: x.o})
	x.check(err)
}
