package finding

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// refusing is a file system in which some files belong to other users, or are immutable.
type refusing struct {
	vfs.FS
	info  func(name string, info vfs.Info) vfs.Info
	flags map[string]vfs.Flags
	mount bool // read-only
}

func (r refusing) Stat(name string) (vfs.Info, error) {
	info, err := r.FS.Stat(name)
	if err == nil && r.info != nil {
		info = r.info(name, info)
	}
	return info, err
}

func (r refusing) Flags(name string) (vfs.Flags, error) { return r.flags[name], nil }

func (r refusing) Volume(name string) (vfs.Volume, error) {
	v, err := r.FS.Volume(name)
	v.ReadOnly = r.mount
	return v, err
}

// An error because the system refuses an operation names the path that causes it, its owner and mode,
// and the command that would change it.
func TestRefusalNamesTheRemedy(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // no owners and modes there: only the system's message is available
	}
	dir := filepath.Join(t.TempDir(), "a store")
	st, err := varve.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	wal := filepath.Join(dir, "wal")
	lock := filepath.Join(wal, "open.lock")
	you := os.Getuid()
	other := func(name string) func(string, vfs.Info) vfs.Info {
		return func(at string, info vfs.Info) vfs.Info {
			info.UID = uint32(you)
			if at == name {
				info.UID = uint32(you + 1)
			}
			return info
		}
	}
	immutable := "chattr -i "
	if runtime.GOOS == "darwin" {
		immutable = "chflags nouchg "
	}
	for _, c := range []struct {
		what  string
		fs    refusing
		errno error
		path  string
		why   string
		fix   string
		root  bool // also reported to root, to which modes do not apply
	}{
		{"read-only mount", refusing{mount: true}, syscall.EROFS, dir, "mounted read-only", "", true},
		{"immutable folder", refusing{flags: map[string]vfs.Flags{wal: {Immutable: true}}}, syscall.EPERM, wal,
			"is immutable", immutable + "'" + wal + "'", true},
		{"immutable file", refusing{flags: map[string]vfs.Flags{lock: {Immutable: true}}}, syscall.EPERM, lock,
			"is immutable", immutable, true},
		{"append only", refusing{flags: map[string]vfs.Flags{lock: {AppendOnly: true}}}, syscall.EPERM, lock,
			"only be appended", "chattr -a ", true},
		{"another owner", refusing{info: other(lock)}, syscall.EACCES, lock, "belongs to another user", "sudo chown -h ",
			false},
	} {
		t.Run(c.what, func(t *testing.T) {
			if mount := vfs.MountPoint(vfs.OS(), dir); c.errno == syscall.EROFS && mount == filepath.Dir(mount) {
				c.fix = "memctl backup DIR" // no message advises to mount the whole system again
			}
			c.fs.FS = fault.New(vfs.OS(), fault.Nth(1, 0,
				func(op *fault.Op) bool { return op.Kind == wrap.OpenLock && op.Path == lock },
				&fs.PathError{Op: "open", Path: lock, Err: c.errno}))
			if you == 0 && !c.root {
				return // modes do not apply to root; TestRefuses of internal/env has the rule
			}
			_, err := varve.Open(t.Context(), dir,
				storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: c.fs}}))
			var p *varve.PermissionError
			if !errors.Is(err, varve.ErrPermission) || !errors.As(err, &p) {
				t.Fatal(err)
			}
			if p.Path != c.path || !strings.Contains(p.Why, c.why) || !strings.Contains(p.Fix, c.fix) {
				t.Errorf("%q %q %q", p.Path, p.Why, p.Fix)
			}
			for _, says := range []string{p.Path, p.Fix, "(mode ", "owned by user "} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("the message lacks %q: %v", says, err)
				}
			}
		})
	}
}

// On real files: an immutable file and a disk that becomes read-only, if the machine permits creating
// them; the cases above have shown the rest.
func TestRefusalOfTheRealSystem(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	fill := func(dir string) {
		st, err := varve.Open(ctx, dir, nil)
		if err == nil {
			_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "x"})
			err = errors.Join(err, st.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(dir string, says ...string) {
		t.Helper()
		_, err := varve.Open(ctx, dir, nil)
		var p *varve.PermissionError
		if !errors.As(err, &p) {
			t.Errorf("%v", err)
			return
		}
		for _, s := range says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("the message lacks %q: %v", s, err)
			}
		}
		ro, err := varve.Open(ctx, dir, &varve.Options{ReadOnly: true})
		if err != nil {
			t.Errorf("read-only: %v", err)
			return
		}
		if m, err := ro.Get(ctx, "a"); err != nil || m.Content != "x" {
			t.Errorf("read-only: %v", err)
		}
		if err := ro.Close(); err != nil {
			t.Error(err)
		}
	}
	fill(dir)
	fill(dir + "2")
	lock := filepath.Join(dir, "wal", "open.lock")
	if chattr, err := exec.LookPath("chattr"); err == nil && os.Getuid() == 0 {
		if exec.Command(chattr, "+i", lock).Run() == nil {
			defer func() { _ = exec.Command(chattr, "-i", lock).Run() }()
			refused(dir, lock, "is immutable", "chattr -i "+lock)
		}
	}
	if mount, ok := fixture.MountSmall(t, 16<<20); ok {
		small := filepath.Join(mount, "s")
		st, err := varve.Open(ctx, small, &varve.Options{SegmentSize: 64 << 10})
		if err == nil {
			_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "x"})
			err = errors.Join(err, st.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		fixture.Remount(t, mount, true)
		refused(small, "mounted read-only", "mount -o remount,rw "+mount, "(mode ")
		_, err = varve.Migrate(ctx, dir+"2", filepath.Join(mount, "new", "place"), nil)
		var p *varve.PermissionError
		if !errors.As(err, &p) || p.Path != mount || p.Fix != "mount -o remount,rw "+mount {
			t.Errorf("moving to a disk that is read-only: %v", err)
		}
		fixture.Remount(t, mount, false)
		if st, err = varve.Open(ctx, small, nil); err != nil {
			t.Fatalf("writable again: %v", err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}
