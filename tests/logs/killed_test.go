package logs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// A process that is killed while others have the store open is no longer named among those that have it
// open, and the next flush of another process removes what it left in tmp/. The files of a live process
// there are not touched.
func TestKilledIdle(t *testing.T) {
	t.Parallel()
	if vfs.OS().Host().Birth == 0 {
		t.Skip("processes cannot be told apart here: mount the /proc of this namespace")
	}
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	dead, out := storetest.Start(t, "idle", dir)
	left, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	living, out := storetest.Start(t, "idle", dir)
	kept, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = living.Process.Kill(); _ = living.Wait() }()
	left, kept = filepath.Join(dir, "tmp", strings.TrimSpace(left)), filepath.Join(dir, "tmp", strings.TrimSpace(kept))
	before := files(t, kept)
	if len(files(t, left)) == 0 || len(before) == 0 {
		t.Fatal("no pool to look after")
	}
	all := []int{os.Getpid(), dead.Process.Pid, living.Process.Pid}
	if got := st.Admin().Stats().Processes; !slices.Equal(got, all) {
		t.Fatalf("open in %v, want %v", got, all)
	}
	if err := dead.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It is known to be dead before its parent has waited for it.
	for began := time.Now(); len(storetest.Inner(st).Engine.Log().Processes().Dead()) == 0 &&
		time.Since(began) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	want := []int{os.Getpid(), living.Process.Pid}
	for _, when := range []string{"killed", "waited for", "flushed"} {
		if s := st.Admin().Stats(); !slices.Equal(s.Processes, want) || len(s.Unsure) > 0 {
			t.Errorf("%s: open in %v, unsure of %v; want %v", when, s.Processes, s.Unsure, want)
		}
		switch when {
		case "killed":
			_ = dead.Wait()
		case "waited for":
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what it left is still there: %v, %v", files(t, left), err)
	}
	if after := files(t, kept); !slices.Equal(after, before) {
		t.Errorf("the pool of one that lives: %v, it was %v", after, before)
	}
	if aside := files(t, filepath.Join(dir, "quarantine")); len(aside) > 0 {
		t.Errorf("set aside: %v", aside)
	}
}

// files returns the paths of the files below a folder.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && d.IsDir() {
			return nil
		}
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
