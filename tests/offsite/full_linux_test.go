package offsite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/remote"
)

// TestFullDisk: the disk of the store, of the user's state or of the copy is full: that is an error, or sending does
// without. Nothing that was sent is lost, and sending continues when there is room. Only root can mount a small disk.
func TestFullDisk(t *testing.T) {
	for _, folder := range []string{"store", "state", "remote"} {
		t.Run(folder, func(t *testing.T) {
			x, ctx := &outsider{t: t, dir: t.TempDir()}, t.Context()
			small := filepath.Join(x.dir, folder)
			mount(t, small)
			x.o = &varve.Options{StateDir: filepath.Join(x.dir, "state"), SegmentSize: 64 << 10, NoBackground: true}
			x.url = "file://" + filepath.Join(x.dir, "remote")
			x.open()
			var err error
			x.remote, err = varve.CreateFolder(ctx, x.url)
			x.check(err)
			of := x.st.Admin().Offsite()
			x.put("a", "one")
			x.check(of.Add(ctx, x.remote, x.url))
			before, err := x.remote.Head(ctx)
			x.check(err)
			x.put("b", "two")
			ballast := filepath.Join(small, "ballast")
			fill(t, ballast)
			_, err = x.st.Admin().Purge(ctx, "a")
			purged := err == nil
			if err != nil && (folder != "store" || !errors.Is(err, varve.ErrDiskFull)) {
				t.Fatal(err)
			}
			err = of.PurgeNow(ctx, x.remote)
			if purged && !errors.Is(err, varve.ErrDiskFull) {
				t.Errorf("a purge with a full disk: %v", err)
			}
			if err := of.Send(ctx, x.remote); err != nil && !errors.Is(err, varve.ErrDiskFull) {
				t.Error(err)
			}
			if head, err := x.remote.Head(ctx); err != nil || head.Number < before.Number {
				t.Errorf("the copy has lost entries: %+v, it was %+v, %v", head, before, err)
			}
			x.check(os.Remove(ballast))
			_, err = x.st.Admin().Purge(ctx, "a")
			if err != nil && !(purged && errors.Is(err, varve.ErrNotFound)) {
				t.Fatal(err)
			}
			x.put("c", "three")
			x.check(of.PurgeNow(ctx, x.remote))
			x.check(of.Send(ctx, x.remote))
			v, err := remote.Verify(ctx, x.remote, true)
			if err != nil || len(v.Damage) > 0 || !v.Restorable {
				t.Errorf("%+v, %v", v, err)
			}
			x.check(x.st.Flush(ctx))
			to := filepath.Join(x.dir, "clone")
			o := *x.o
			o.StateDir = filepath.Join(x.dir, "other")
			_, err = varve.Clone(ctx, x.remote, to, &varve.CloneOptions{Options: &o})
			x.check(err)
			storetest.SameTexts(t, "documents", files(t, to), files(t, filepath.Join(x.dir, "store")))
		})
	}
}

// TestFullPlace: a folder on a full disk becomes no copy, with an error that tells that the disk is full, and not that
// the folder is unsuitable. It becomes one when there is room.
func TestFullPlace(t *testing.T) {
	small := filepath.Join(t.TempDir(), "remote")
	mount(t, small)
	url, ballast := "file://"+filepath.Join(small, "copy"), filepath.Join(small, "ballast")
	fill(t, ballast)
	if err := os.Truncate(ballast, 8<<20-64<<10); err != nil { // room for the first files of the test of the folder
		t.Fatal(err)
	}
	_, err := varve.CreateFolder(t.Context(), url)
	if !errors.Is(err, varve.ErrDiskFull) || errors.Is(err, remote.ErrUnsuitable) {
		t.Error(err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.CreateFolder(t.Context(), url); err != nil {
		t.Error(err)
	}
}

// mount makes a folder with a small file system.
func mount(t *testing.T, folder string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 || syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=8m,mode=0700") != nil {
		t.Skip("no tmpfs can be mounted")
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
}

// fill writes a file until its disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
