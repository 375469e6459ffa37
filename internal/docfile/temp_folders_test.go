package docfile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// folders returns the engine's folders in tmp/.
func (b *bed) folders() []string {
	b.t.Helper()
	list, err := os.ReadDir(filepath.Join(b.l.Root, tempFolder, "tok"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func (b *bed) wantFolders(names ...string) {
	b.t.Helper()
	if got := b.folders(); !slices.Equal(got, names) {
		b.t.Fatalf("folders %v, want %v", got, names)
	}
}

// A worker continues in another folder after so many files, and removes the previous one when it is empty.
func TestTempFolders(t *testing.T) {
	b := newBed(t, func(o *Options) { o.TempFiles = 3 })
	n := 0
	put := func() {
		t.Helper()
		n++
		b.put(b.change(fmt.Sprint("m", n), 0, 1))
	}
	for range 3 {
		put()
		b.wantFolders("0")
	}
	put()
	b.wantFolders("0-1")
	// A file that is left in a folder keeps that folder, and not the next ones.
	left := filepath.Join(b.l.Root, tempFolder, "tok", "0-1", "left")
	if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		put()
	}
	b.wantFolders("0-1", "0-2")
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		put()
	}
	b.wantFolders("0-3")
	// Reused files are not created.
	b.put(b.change("m1", 1, 2))
	for range 8 {
		b.put(b.change("m1", 2, 3))
		b.put(b.change("m1", 3, 2))
	}
	b.wantFolders("0-3")
	for i := 2; i <= n; i++ {
		b.want(fmt.Sprint("m", i), 1)
	}
	b.want("m1", 2)
	if err := b.fl.Close(); err != nil {
		t.Fatal(err)
	}
	b.wantFolders()
}

// Where no other folder can be created durably, the worker stays in the present one.
func TestTempFolderCannotBeMade(t *testing.T) {
	for _, op := range []string{"mkdir", "syncdir"} {
		b := newBed(t, func(o *Options) { o.TempFiles = 1 })
		b.put(b.change("m1", 0, 1), b.change("m2", 0, 1))
		b.fs.on = func(what, name string) error {
			if what == op && (strings.Contains(name, "tok/") || strings.HasSuffix(name, "/tok")) {
				return syscall.ENOSPC
			}
			return nil
		}
		b.put(b.change("m1", 1, 0))
		b.put(b.change("m3", 0, 1))
		b.wantFolders("0")
		b.fs.on = nil
		b.put(b.change("m4", 0, 1))
		b.put(b.change("m5", 0, 1))
		if names := b.folders(); len(names) != 1 || names[0] == "0" {
			t.Errorf("%s: folders %v", op, names)
		}
	}
}

// A folder whose creation was not made durable is not treated as durable by the next round.
func TestTempFolderOfAFailedSync(t *testing.T) {
	b := newBed(t, nil)
	failed, after := false, 0
	b.fs.on = func(op, name string) error {
		if op != "syncdir" || !strings.HasSuffix(name, "/tmp/tok") {
			return nil
		}
		if after++; !failed {
			failed, after = true, 0
			return syscall.EIO
		}
		return nil
	}
	if _, err := b.fl.Round(context.Background(), []Change{b.change("m1", 0, 1)}); err == nil {
		t.Fatal("no error")
	}
	b.put(b.change("m1", 0, 1))
	if after == 0 {
		t.Error("the folder was never synced")
	}
}

// Something that is not a folder of ours is not removed, in the place of an earlier folder and of the
// present one.
func TestTempFolderOfAStranger(t *testing.T) {
	for _, name := range []string{"0-1", "0"} {
		b := newBed(t, func(o *Options) { o.TempFiles = 1 })
		b.put(b.change("m1", 0, 1))
		path := filepath.Join(b.l.Root, tempFolder, "tok", name)
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte("a stranger's work"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := b.fl.Round(context.Background(), []Change{b.change("m2", 0, 1)})
		_ = b.fl.Close()
		if got, rerr := os.ReadFile(path); string(got) != "a stranger's work" {
			t.Errorf("%s: %q, %v; the round: %v", name, got, rerr, err)
		}
	}
}

// An edit that was displaced and could not be examined in a failed round survives a power cut at any later
// moment: in a round that continues in another folder, and when the engine is closed.
func TestEditOfAFailedRoundIsKept(t *testing.T) {
	seeds := uint64(300)
	for _, closes := range []bool{false, true} {
		for seed := range seeds {
			if !editIsKept(t, seed, closes) {
				t.Errorf("closed %v, seed %d: the edit is nowhere", closes, seed)
				break
			}
		}
	}
}

func editIsKept(t *testing.T, seed uint64, closes bool) bool {
	s := emptyScene(t, way{})
	s.put(s.change("e.json", 0, 1), s.change("x.json", 0, 1)) // with one more the worker continues in another folder
	saved := false
	s.fs.on = func(op, name string) error {
		if op == "exchange" && !saved {
			saved = true
			s.save()
		}
		if saved && op == "open" && strings.HasPrefix(name, "/store/tmp/tok") {
			return syscall.EMFILE // what was displaced
		}
		return nil
	}
	if _, err := s.fl.Round(context.Background(), []Change{s.change("e.json", 1, 2)}); err == nil {
		t.Fatal("the case is too weak: the round did not fail")
	}
	var next *crash.Disk
	cut := func() { next = s.disk.Crash(crash.KeepRandom, rand.New(rand.NewPCG(seed, 1))) }
	s.fs.on = func(op, name string) error {
		if next == nil && op == "open" && strings.HasPrefix(name, "/store/tmp/parked/") {
			cut()
		}
		return nil
	}
	if closes {
		_ = s.fl.Close()
		cut()
	} else if _, err := s.fl.Round(context.Background(), []Change{s.change("e.json", 1, 2)}); err != nil {
		t.Fatal(err)
	}
	if next == nil {
		t.Fatal("never cut")
	}
	return isAnywhere(next.Process("after"), "/store", handmade)
}

// isAnywhere reports whether a file below a folder has this content.
func isAnywhere(fsys vfs.FS, dir, content string) bool {
	names, _ := fsys.ReadDir(dir)
	return slices.ContainsFunc(names, func(name string) bool {
		path := dir + "/" + name
		info, err := fsys.Stat(path)
		if err != nil || info.Mode.IsDir() {
			return err == nil && isAnywhere(fsys, path, content)
		}
		b, err := vfs.ReadFile(fsys, path, 1<<20)
		return err == nil && string(b) == content
	})
}
