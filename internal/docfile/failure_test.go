package docfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

func TestBlockedPlace(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, to := range []int{0, 2} {
			t.Run(fmt.Sprintf("late=%v/to=%d", late, to), func(t *testing.T) {
				b := newBed(t, nil)
				b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1), b.change("c.json", 0, 1))
				b.write(b.path("target"), "outside")
				spoil := func() {
					os.Remove(b.folder.Path("a.json"))
					os.Remove(b.folder.Path("b.json"))
					if err := os.Symlink(b.path("target"), b.folder.Path("a.json")); err != nil {
						t.Skip(err)
					}
					if err := os.Mkdir(b.folder.Path("b.json"), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				if late {
					b.fs.on = func(op, name string) error {
						if op == "exchange" || op == "renamenew" {
							b.fs.on = nil
							spoil()
						}
						return nil
					}
				} else {
					spoil()
				}
				r := b.round(b.change("a.json", 1, to), b.change("b.json", 1, to), b.change("c.json", 1, 2))
				if len(r.Blocked) != 2 || !strings.Contains(r.Blocked[0].Err.Error(), "memories/a.json is a symbolic link") {
					t.Fatalf("%+v", r)
				}
				b.want("c.json", 2)
				if b.files()["target"] != "outside" {
					t.Fatal("the link was followed")
				}
				if st, err := os.Lstat(b.folder.Path("a.json")); err != nil || st.Mode()&fs.ModeSymlink == 0 {
					t.Fatal("the link is gone")
				}
				if _, _, err := b.folder.Read("a.json", 0); err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("read through a link: %v", err)
				}
				if _, _, err := b.folder.Read("b.json", 0); err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("read a folder: %v", err)
				}
			})
		}
	}
}

// FAILURES 6, 71: after a failed barrier or sync no inode of that round is used again, and each file is
// synced separately.
func TestFailedSync(t *testing.T) {
	for _, op := range []string{"barrier", "sync", "syncdir"} {
		t.Run(op, func(t *testing.T) {
			n := 80
			b := newBed(t, func(o *Options) {
				if op != "barrier" {
					o.Direct = 100
				}
			})
			all := func(from, to int) (cs []Change) {
				for i := range n {
					cs = append(cs, b.change(name(i), from, to))
				}
				return cs
			}
			b.put(all(0, 1)...)
			b.put(b.change("gone.json", 0, 1))
			b.put(b.change("gone.json", 1, 0)) // so that the pool has a file
			count := 0
			b.fs.on = func(o, p string) error {
				if o != op || o == "syncdir" && !strings.HasSuffix(p, "memories") {
					return nil
				}
				if count++; op != "sync" || count == n/2 {
					return syscall.EIO
				}
				return nil
			}
			if _, err := b.fl.Round(context.Background(), all(1, 2)); !errors.Is(err, errs.ErrSyncFailed) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("got %v", err)
			}
			if left := b.files("tmp"); len(left) != 0 {
				t.Fatalf("the pool was not emptied: %v", left)
			}
			used := map[uint64]bool{}
			for i := range n {
				info, err := b.folder.Stat(name(i))
				if err != nil {
					t.Fatal(err)
				}
				used[info.Ino] = true
			}
			synced, opened := map[string]bool{}, 0
			b.fs.on = func(o, p string) error {
				switch o {
				case "sync":
					synced[p] = true
				case "openbarrier":
					opened++
				case "exchange": // checked before the old inode is freed for others
					st, err := b.fs.FS.Stat(p)
					if err != nil || !used[st.Ino] {
						t.Errorf("%s: unexpected inode %d %v", p, st.Ino, err)
					}
				}
				return nil
			}
			b.put(all(1, 2)...)
			if len(synced) != n || opened != 0 {
				t.Fatalf("%d files synced, want %d; %d barriers", len(synced), n, opened)
			}
			for i := range n {
				b.want(name(i), 2)
			}
			b.wantSetAside()
		})
	}
}

// No write goes to an inode of a failed round.
func TestFreshInodesAfterFailure(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1), b.change("c.json", 0, 1))
	b.fs.on = func(o, p string) error {
		if o == "syncdir" && strings.HasSuffix(p, "memories") {
			return syscall.EIO
		}
		return nil
	}
	if _, err := b.fl.Round(context.Background(), []Change{b.change("a.json", 1, 2), b.change("b.json", 1, 2)}); err == nil {
		t.Fatal("no error")
	}
	var reused []string
	b.fs.on = func(o, p string) error {
		if o == "write" {
			if st, err := b.fs.FS.Stat(p); err != nil || st.Size != 0 {
				reused = append(reused, p)
			}
		}
		return nil
	}
	b.put(b.change("a.json", 1, 2), b.change("b.json", 1, 2), b.change("c.json", 1, 2))
	if len(reused) > 0 {
		t.Fatalf("written into used inodes: %v", reused)
	}
	skipWithoutLeases(t, b)
	b.put(b.change("a.json", 2, 3), b.change("b.json", 2, 3), b.change("c.json", 2, 3))
	if len(reused) == 0 {
		t.Fatal("after a good round inodes are used again")
	}
}

// FAILURES 17: a folder that could not be opened is not a folder whose sync failed: the error says so, and
// the round is repeated without new inodes.
func TestNoFilesLeftToSync(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		b := newBed(t, nil)
		b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1), b.change("c.json", 0, 1))
		b.fs.on = func(o, p string) error {
			if o == "syncdir" && strings.HasSuffix(p, "memories") {
				return errno
			}
			return nil
		}
		_, err := b.fl.Round(context.Background(), []Change{b.change("a.json", 1, 2), b.change("b.json", 1, 2)})
		if !errors.Is(err, errno) || !errors.Is(err, errs.ErrTooManyFiles) || errors.Is(err, errs.ErrSyncFailed) {
			t.Fatalf("%v: %v", errno, err)
		}
		skipWithoutLeases(t, b)
		reused := 0
		b.fs.on = func(o, p string) error {
			if st, err := b.fs.FS.Stat(p); o == "write" && err == nil && st.Size != 0 {
				reused++
			}
			return nil
		}
		b.put(b.change("a.json", 2, 2), b.change("b.json", 2, 2), b.change("c.json", 1, 2))
		for _, name := range []string{"a.json", "b.json", "c.json"} {
			b.want(name, 2)
		}
		b.wantSetAside()
		if reused == 0 {
			t.Errorf("%v: the round was repeated with fresh inodes, as after a failed sync", errno)
		}
	}
}

func TestDistrust(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	b.put(b.change("a.json", 1, 2)) // the pool has a file
	b.fl.Distrust()
	b.fs.on = func(o, p string) error {
		if st, err := b.fs.FS.Stat(p); o == "write" && (err != nil || st.Size != 0) {
			t.Errorf("written into a used inode: %s", p)
		}
		return nil
	}
	b.put(b.change("a.json", 2, 3), b.change("b.json", 1, 3))
}

// A full disk, no descriptors, a file system that becomes read-only within a round: the files in place stay
// whole, the round returns the error, and the next one succeeds.
func TestErrorsInMidRound(t *testing.T) {
	for op, list := range map[string]map[syscall.Errno]error{
		"write":     {syscall.ENOSPC: errs.ErrDiskFull, syscall.EDQUOT: errs.ErrDiskFull},
		"open":      {syscall.EMFILE: nil, syscall.EROFS: errs.ErrReadOnly, syscall.EACCES: errs.ErrPermission},
		"exchange":  {syscall.EROFS: errs.ErrReadOnly, syscall.EIO: nil},
		"exchanged": {syscall.EIO: nil}, // it was done, and returns an error nevertheless
		"renamenew": {syscall.ENOSPC: errs.ErrDiskFull},
		"lease":     {syscall.EIO: nil},
	} {
		for errno, sentinel := range list {
			for k := 1; k <= 12; k++ {
				b := newBed(t, nil)
				b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1), b.change("d.json", 0, 1))
				b.write(b.folder.Path("b.json"), "by hand")
				n, hit := 0, false
				b.fs.on = func(o, p string) error {
					if o != op || strings.Contains(p, "quarantine") {
						return nil
					}
					if n++; n == k {
						hit = true
						return &fs.PathError{Op: op, Path: p, Err: errno}
					}
					return nil
				}
				cs := func() []Change {
					return []Change{b.change("a.json", 1, 2), b.change("b.json", 1, 2), b.change("c.json", 0, 1), b.change("d.json", 1, 0)}
				}
				_, err := b.fl.Round(context.Background(), cs())
				if err != nil && (!errors.Is(err, errno) || sentinel != nil && !errors.Is(err, sentinel)) {
					t.Fatalf("%s %v at %d: got %v", op, errno, k, err)
				}
				b.fs.on = nil
				for i, n := range []string{"a.json", "c.json", "d.json"} {
					got, _, rerr := b.folder.Read(n, 0)
					switch {
					case rerr == nil && (string(got) == doc(n, 1) || string(got) == doc(n, 2)):
					case errors.Is(rerr, fs.ErrNotExist) && i > 0:
					default:
						t.Fatalf("%s %v at %d: %s is %q, %v", op, errno, k, n, got, rerr)
					}
				}
				b.round(cs()...)
				b.round()
				b.want("a.json", 2)
				b.want("b.json", 2)
				b.want("c.json", 1)
				// The pool of the failed round may still have files that it could not judge.
				if _, err := b.fl.EmptyTemp(b.surplus); err != nil {
					t.Fatal(err)
				}
				b.wantSetAside("by hand")
				if left := b.files("tmp"); len(left) != 0 {
					t.Fatalf("%s %v at %d: left %v", op, errno, k, left)
				}
				if !hit {
					break
				}
			}
		}
	}
}

// surplus knows every version ever put, and half-written ones.
func (b *bed) surplus(_ string, _ vfs.Info, data func() ([]byte, error)) bool {
	d, err := data()
	if err != nil {
		return false
	}
	for _, list := range b.known {
		for _, v := range list {
			if v == string(d) {
				return true
			}
		}
	}
	return false
}

func TestRoundRefuses(t *testing.T) {
	b := newBed(t, nil)
	if err := os.Symlink(t.TempDir(), b.path("linked")); err != nil {
		t.Skip(err)
	}
	b.put(b.change("a.json", 0, 1))
	c := b.change("a.json", 1, 2)
	c.Folder = b.l.Folder("linked")
	for what, change := range map[string]Change{
		"a linked folder": c,
		"a path":          b.change("../a.json", 0, 1),
		"no bytes":        {Folder: b.folder, Name: "e.json", Data: func() ([]byte, error) { return nil, nil }},
		"no log":          {Folder: b.folder, Name: "e.json", Data: func() ([]byte, error) { return nil, errs.ErrTruncated }},
	} {
		if _, err := b.fl.Round(context.Background(), []Change{change}); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if err := b.l.Folder("linked").Make(); err == nil {
		t.Error("Make follows a link")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.fl.Round(ctx, []Change{b.change("a.json", 1, 2)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.want("a.json", 1)
	if _, err := os.Stat(filepath.Join(b.path("linked"), "a.json")); err == nil {
		t.Error("written through a link")
	}
}

// The barrier of a round fails when the next round is already in place: both count as failed, and so do the
// rounds that repeat them.
func TestSyncFailsBehindTheNextPut(t *testing.T) {
	b := newBed(t, func(o *Options) { o.Direct = 1; o.Workers = 2 })
	var first, second []Change
	for i := range 40 {
		first = append(first, b.change(name(i), 0, 1))
		second = append(second, b.change(name(100+i), 0, 1))
	}
	p1, _, err := b.fl.Put(context.Background(), changeList(first))
	if err != nil {
		t.Fatal(err)
	}
	p2, _, err := b.fl.Put(context.Background(), changeList(second))
	if err != nil {
		t.Fatal(err)
	}
	b.fs.on = func(o, _ string) error {
		if o == "barrier" {
			return syscall.EIO
		}
		return nil
	}
	err1 := p1.End(p1.Sync())
	b.fs.on = nil
	if !errors.Is(err1, errs.ErrSyncFailed) {
		t.Fatalf("got %v", err1)
	}
	if err := p2.End(err1); !errors.Is(err, err1) {
		t.Fatal("the second ended well")
	}
	if !b.fl.fresh || !b.fl.distrust {
		t.Error("the next round trusts what this one left")
	}
	b.put(first...)
	b.fl.Repeat()
	if !b.fl.fresh || !b.fl.distrust {
		t.Error("the repetition's second round trusts it")
	}
	b.put(second...)
	for i := range 40 {
		b.want(name(i), 1)
		b.want(name(100+i), 1)
	}
	b.wantSetAside()
}
