//go:build linux || darwin

package notecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/adopted"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

func TestMain(m *testing.M) {
	storetest.Main(m, storetest.Jobs(map[string]storetest.Job{"adopt": job(true), "release": job(false)}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// box is a store and a folder beside it.
type box struct {
	dir, store, link string
	plain            bool // the file system cannot swap two names
}

func boxIn(dir string) box {
	return box{dir, filepath.Join(dir, "storage"), filepath.Join(dir, "vault"), strings.HasSuffix(dir, plain)}
}

// plain ends the name of a box whose file system cannot swap two names.
const plain = "-plain"

// run adopts or releases the folder; step is called after each step.
func (b box) run(ctx context.Context, adopt bool, step func(string)) (adoptReport, error) {
	var r adoptReport
	st, err := varve.Open(ctx, b.store, &varve.Options{NoBackground: true})
	if err != nil {
		return r, err
	}
	folders, err := adopted.Of(b.store)
	if err != nil {
		return r, err
	}
	ad := &adopting{folders: folders, clock: time.Now, step: step, exchange: vfs.OS().Exchange}
	if b.plain {
		ad.exchange = func(string, string) error { return errors.ErrUnsupported }
	}
	if adopt {
		r, err = ad.adopt(ctx, st, b.link, "")
	} else {
		r, err = ad.release(ctx, st, b.link)
	}
	if cerr := st.Close(); err == nil {
		err = cerr
	}
	return r, err
}

// job is a process that is killed after a number of steps. It prints the name of the last one.
func job(adopt bool) storetest.Job {
	return func(ctx context.Context, arg, dir string) error {
		left, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		_, err = boxIn(dir).run(ctx, adopt, func(name string) {
			if left--; left == 0 {
				fmt.Println(name)
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})
		return err
	}
}

// killed runs a job that is killed after n steps; done reports that it had fewer.
func (b box) killed(t *testing.T, job string, n int) (step string, done bool) {
	t.Helper()
	cmd, out := storetest.Start(t, fmt.Sprint(job, ":", n), b.dir)
	step, _ = out.ReadString('\n')
	err := cmd.Wait()
	return strings.TrimSpace(step), err == nil
}

// made makes a store and a folder of files.
func made(t *testing.T, suffix string) box {
	t.Helper()
	b := boxIn(filepath.Join(t.TempDir(), "box"+suffix))
	must(t, os.Mkdir(b.dir, 0o700))
	st, err := varve.Open(t.Context(), b.store, &varve.Options{NoBackground: true})
	must(t, err)
	must(t, st.Close())
	b.fill(t, "one")
	return b
}

var files = []string{"index.md", "sub/deep.md", ".hidden"}

func (b box) fill(t *testing.T, text string) {
	t.Helper()
	for _, name := range files {
		path := filepath.Join(b.link, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text+" "+name), 0o600))
	}
}

// expect reads the files at the path of the folder.
func (b box) expect(t *testing.T, when, text string, names ...string) {
	t.Helper()
	for _, name := range names {
		if got, err := os.ReadFile(filepath.Join(b.link, name)); err != nil || string(got) != text+" "+name {
			t.Errorf("%s: %s: %q %v", when, name, got, err)
		}
	}
}

// isAdopted checks the result of an adoption: the link, the notes, and nothing left beside them.
func (b box) isAdopted(t *testing.T, when string, versions int) {
	t.Helper()
	if to, err := os.Readlink(b.link); err != nil || to != filepath.Join(b.store, "notes", "vault") {
		t.Errorf("%s: link to %q, %v", when, to, err)
	}
	folders, err := adopted.Of(b.store)
	must(t, err)
	list, err := folders.List()
	if err != nil || len(list) != 1 || folders.Problem(&list[0]) != "" {
		t.Errorf("%s: %+v %v", when, list, err)
	}
	st, err := varve.Open(t.Context(), b.store, &varve.Options{NoBackground: true})
	must(t, err)
	defer func() { must(t, st.Close()) }()
	for _, name := range []string{"vault/index.md", "vault/sub/deep.md"} {
		n := 0
		for v, err := range st.Notes().History(t.Context(), name) {
			if must(t, err); !v.Deleted {
				n++
			}
		}
		if n != versions {
			t.Errorf("%s: %s has %d versions, want %d", when, name, n, versions)
		}
	}
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

func (b box) beside(t *testing.T, when string, want int) {
	t.Helper()
	if list, err := os.ReadDir(b.dir); err != nil || len(list) != want {
		t.Errorf("%s: %v %v", when, list, err)
	}
}

// TestAdoptKilled: an adoption that is killed after each of its steps leaves the files at the path of the folder, and
// the same command completes it.
func TestAdoptKilled(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", plain} {
		for n := 1; ; n++ {
			b := made(t, suffix)
			step, done := b.killed(t, "adopt", n)
			when := fmt.Sprintf("adopt"+suffix+", killed after step %d, %s", n, step)
			if !b.plain {
				b.expect(t, when, "one", files...)
			}
			if done {
				if n < 6 {
					t.Errorf("only %d steps", n)
				}
				break
			}
			if _, err := b.run(t.Context(), true, func(string) {}); err != nil {
				t.Fatal(when, err)
			}
			b.expect(t, when, "one", files...)
			b.isAdopted(t, when, 1)
			b.beside(t, when, 2)
		}
	}
}

// TestAdoptKilledReleased: an adoption that is killed can be undone, too.
func TestAdoptKilledReleased(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", plain} {
		for n := 1; ; n++ {
			b := made(t, suffix)
			step, done := b.killed(t, "adopt", n)
			if done {
				break
			}
			when := fmt.Sprintf("adopt"+suffix+", killed after step %d, %s", n, step)
			if _, err := b.run(t.Context(), false, func(string) {}); err != nil {
				t.Fatal(when, err)
			}
			b.expect(t, when, "one", files...)
			b.isReleased(t, when)
		}
	}
}

// isReleased checks the result of a release.
func (b box) isReleased(t *testing.T, when string) {
	t.Helper()
	if info, err := os.Lstat(b.link); err != nil || !info.IsDir() {
		t.Errorf("%s: %v %v", when, info, err)
	}
	if _, err := os.Lstat(filepath.Join(b.store, "notes", "vault")); !os.IsNotExist(err) {
		t.Errorf("%s: notes/vault: %v", when, err)
	}
	folders, err := adopted.Of(b.store)
	must(t, err)
	if list, err := folders.List(); err != nil || len(list) != 0 {
		t.Errorf("%s: %+v %v", when, list, err)
	}
	st, err := varve.Open(t.Context(), b.store, &varve.Options{NoBackground: true})
	must(t, err)
	defer func() { must(t, st.Close()) }()
	for e, err := range st.Notes().List(t.Context(), "", 0) {
		t.Errorf("%s: %s is there still, %v", when, e.Path, err)
	}
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
	b.beside(t, when, 2)
}

// TestReleaseKilled: a release that is killed after each of its steps leaves the files at the path of the folder, and
// the same command completes it.
func TestReleaseKilled(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", plain} {
		for n := 1; ; n++ {
			b := made(t, suffix)
			_, err := b.run(t.Context(), true, func(string) {})
			must(t, err)
			b.fill(t, "two") // which no process has adopted yet
			step, done := b.killed(t, "release", n)
			when := fmt.Sprintf("release"+suffix+", killed after step %d, %s", n, step)
			if !b.plain {
				b.expect(t, when, "two", files...)
			}
			if done {
				if n < 6 {
					t.Errorf("only %d steps", n)
				}
				break
			}
			_, err = b.run(t.Context(), false, func(string) {})
			if step == adopted.Released && err != nil && strings.Contains(err.Error(), "not an adopted folder") {
				err = nil // it was complete
			}
			if err != nil {
				t.Fatal(when, err)
			}
			b.expect(t, when, "two", files...)
			b.isReleased(t, when)
		}
	}
}

// TestTakeInKilled: the files of a folder that has replaced the link are taken in, also by a command that is killed
// after each of its steps and repeated.
func TestTakeInKilled(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", plain} {
		for n := 1; ; n++ {
			b := made(t, suffix)
			_, err := b.run(t.Context(), true, func(string) {})
			must(t, err)
			must(t, os.Remove(b.link))
			b.fill(t, "two")
			step, done := b.killed(t, "adopt", n)
			when := fmt.Sprintf("taking in"+suffix+", killed after step %d, %s", n, step)
			if !b.plain {
				b.expect(t, when, "two", "index.md", "sub/deep.md")
			}
			if done {
				if n < 5 {
					t.Errorf("only %d steps", n)
				}
				break
			}
			if _, err := b.run(t.Context(), true, func(string) {}); err != nil {
				t.Fatal(when, err)
			}
			b.expect(t, when, "two", "index.md", "sub/deep.md")
			b.isAdopted(t, when, 2)
			b.beside(t, when, 3)
		}
	}
}

// TestAdoptVanished: an adopted folder that has vanished from the store is made again, with the files of its notes, or
// empty if it has none.
func TestAdoptVanished(t *testing.T) {
	t.Parallel()
	b := made(t, "")
	_, err := b.run(t.Context(), true, func(string) {})
	must(t, err)
	root := filepath.Join(b.store, "notes", "vault")
	must(t, os.RemoveAll(root))
	if _, err := b.run(t.Context(), true, func(string) {}); err != nil {
		t.Fatal(err)
	}
	b.expect(t, "restored", "one", "index.md", "sub/deep.md")
	st, err := varve.Open(t.Context(), b.store, &varve.Options{NoBackground: true})
	must(t, err)
	_, err = st.Notes().DeleteFolder(t.Context(), "vault")
	must(t, errors.Join(err, st.Close()))
	must(t, os.RemoveAll(root))
	if _, err := b.run(t.Context(), true, func(string) {}); err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(filepath.Join(b.link, "new.md"), []byte("x"), 0o600))
}

// TestReleaseTakesLaterWrites: what another process writes to the notes while the folder is moved out is in the folder.
func TestReleaseTakesLaterWrites(t *testing.T) {
	t.Parallel()
	b := made(t, "")
	_, err := b.run(t.Context(), true, func(string) {})
	must(t, err)
	other, err := varve.Open(t.Context(), b.store, &varve.Options{NoBackground: true})
	must(t, err)
	_, err = b.run(t.Context(), false, func(step string) {
		if step == "exchanged" {
			for _, name := range []string{"index.md", "sub/new.md"} {
				_, err := other.Notes().Write(t.Context(), "vault/"+name, []byte("late "+name))
				must(t, err)
			}
		}
	})
	must(t, err)
	must(t, other.Close())
	b.expect(t, "released", "late", "index.md", "sub/new.md")
	b.expect(t, "released", "one", "sub/deep.md", ".hidden")
	b.isReleased(t, "released")
}

// TestAdoptRefused: what cannot be moved into the store stays as it is, also when that shows late.
func TestAdoptRefused(t *testing.T) {
	t.Parallel()
	b := made(t, "")
	if other, err := os.MkdirTemp("/dev/shm", "varve-adopt-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(other) })
		if elsewhere, err := os.MkdirTemp("/var/tmp", "varve-adopt-"); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
			x := boxIn(other)
			st, err := varve.Open(t.Context(), x.store, &varve.Options{NoBackground: true})
			must(t, err)
			must(t, st.Close())
			x.link = filepath.Join(elsewhere, "vault")
			x.fill(t, "one")
			_, err = x.run(t.Context(), true, func(string) {})
			if err == nil || !strings.Contains(err.Error(), "another file system") {
				t.Error(err)
			}
			x.expect(t, "on another file system", "one", files...)
		}
	}
	notes, secret := filepath.Join(b.store, "notes"), filepath.Join(filepath.Dir(b.dir), "secret")
	must(t, os.Mkdir(secret, 0o700))
	must(t, os.RemoveAll(notes))
	must(t, os.Symlink(secret, notes))
	if _, err := b.run(t.Context(), true, func(string) {}); !errors.Is(err, vfs.ErrNotFolder) {
		t.Error("notes is a link:", err)
	}
	b.expect(t, "notes is a link", "one", files...)
	if list, err := os.ReadDir(secret); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	must(t, os.Remove(notes))
	if os.Getuid() != 0 { // root may write there
		must(t, os.Chmod(b.dir, 0o500))
		if _, err := b.run(t.Context(), true, func(string) {}); err == nil {
			t.Error("adopted")
		}
		must(t, os.Chmod(b.dir, 0o700))
		b.expect(t, "refused", "one", files...)
		b.isReleased(t, "refused")
	}
}

// TestAdoptedIsWatched: a process that watches the store adopts what a program writes into a folder that was adopted
// meanwhile, and goes on after the folder has got new ones.
func TestAdoptedIsWatched(t *testing.T) {
	t.Parallel()
	b := made(t, "")
	st, err := varve.Open(t.Context(), b.store, &varve.Options{WatchFiles: true})
	must(t, err)
	defer func() { must(t, st.Close()) }()
	_, err = b.run(t.Context(), true, func(string) {})
	must(t, err)
	until := func(name, text string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			n := 0
			for v, err := range st.Notes().History(t.Context(), "vault/"+name) {
				if err == nil && string(v.Document) == text {
					n++
				}
			}
			if n == 1 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %q is in no version", name, text)
			}
		}
	}
	for i, name := range []string{"index.md", "sub/deep.md", "new.md", "other/deep/new.md", "index.md"} {
		text := fmt.Sprint("text ", i)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(b.link, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(b.link, name), []byte(text), 0o600))
		until(name, text)
	}
}
