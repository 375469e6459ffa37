//go:build unix

package replaced

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// event is an event that happens to the folder of an open store.
type event struct {
	name     string
	variants []string
	// prepare makes what do needs, while no process has the store open.
	prepare func(w *world) error
	// do is the event. It returns where the folder that A has opened is now: "" if it is gone or
	// still at the path.
	do func(w *world) (old string, err error)

	absent  bool // afterwards there is no store at the path
	other   bool // afterwards another folder is at the path
	destroy bool // what was only in the log is gone with it
	logOnly bool // the documents stay, so that a host can restore what was in no file yet
}

var events = []event{
	{name: "rm", variants: []string{"rm -rf"}, do: remove, absent: true, destroy: true},
	{name: "clean", variants: []string{"git clean -fdX"}, prepare: gitted, do: clean, destroy: true, logOnly: true},
	{name: "init", variants: []string{"rename away, memctl init"}, do: initAgain, other: true},
	{name: "swap", variants: []string{"restored store"}, prepare: restored, do: swap, other: true},
	{name: "link", variants: []string{"new store", "restored store"}, prepare: linked, do: relink, other: true},
	{name: "restore", variants: []string{"after rename", "after rm -rf"}, prepare: backedUp, do: restoreAgain,
		other: true},
	{name: "over",
		variants: []string{"tar", "rsync --checksum", "rsync --checksum --delete", "cp -a", "copy, removed first"},
		prepare:  archived, do: over, destroy: true},
	{name: "wipe", variants: []string{"segments", "all but shared", "all", "locks", "rest"}, do: wipe,
		destroy: true, logOnly: true},
	{name: "bind", variants: []string{"new store", "restored store"}, prepare: another, do: bind, other: true},
}

// world has the folders of one run.
type world struct {
	t       testing.TB
	root    string
	path    string // given to A and B
	variant string
	next    string // the store that comes to the path, prepared
	source  string // of over: the copy; of restore: the backup
	gone    bool   // the folder that A had opened no longer exists
	seeds   map[string]string
}

const baseMemories = 10

// newWorld creates the store that A opens.
func newWorld(t testing.TB, root, variant string, e *event) (*world, error) {
	w := &world{t: t, root: root, variant: variant, seeds: map[string]string{}}
	w.path = filepath.Join(root, "place", "storage")
	base := map[string]string{}
	for i := range baseMemories {
		base[fmt.Sprint("base-", i)] = fmt.Sprintf("memory %d of the first store", i)
	}
	stored(t, w.path, base)
	if !e.absent && !e.other {
		for i := 4; i < baseMemories; i++ { // the operations of A change those before
			w.seeds[fmt.Sprint("base-", i)] = base[fmt.Sprint("base-", i)]
		}
	}
	if e.prepare != nil {
		return w, e.prepare(w)
	}
	return w, nil
}

// tool runs a program.
func tool(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// removed removes a folder as rm -rf does, again if a process still creates files in it.
func removed(dir string) error {
	var err error
	for range 1000 {
		if err = os.RemoveAll(dir); err == nil {
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
	}
	return fmt.Errorf("rm -rf %s, 1000 times: %w", dir, err)
}

func remove(w *world) (string, error) {
	w.gone = true
	return "", removed(w.path)
}

func gitted(w *world) error {
	dir := filepath.Dir(w.path)
	commit := []string{"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "first"}
	for _, args := range [][]string{{"init", "-q", "."}, {"add", "storage"}, commit} {
		if _, err := tool(dir, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

// clean repeats the command while files that it removes are created.
func clean(w *world) (string, error) {
	var err error
	for range 5 {
		if _, err = tool(filepath.Dir(w.path), "git", "clean", "-fdXq"); err == nil {
			return "", nil
		}
	}
	return "", err
}

// fresh creates a store with memories of its own.
func (w *world) fresh(dir string) {
	w.seeds = map[string]string{}
	for i := range 5 {
		w.seeds[fmt.Sprint("new-", i)] = fmt.Sprintf("memory %d of the second store", i)
	}
	stored(w.t, dir, w.seeds)
}

func (w *world) old() string { return w.path + ".old" }

func initAgain(w *world) (string, error) {
	if err := os.Rename(w.path, w.old()); err != nil {
		return "", err
	}
	if _, err := run(w.path, "init"); err != nil {
		return "", err
	}
	w.fresh(w.path)
	return w.old(), nil
}

// backedUp makes a backup of the store.
func backedUp(w *world) error {
	w.source = filepath.Join(w.root, "backup")
	_, err := run(w.path, "backup", w.source)
	w.seeds = map[string]string{}
	for i := range baseMemories {
		w.seeds[fmt.Sprint("base-", i)] = fmt.Sprintf("memory %d of the first store", i)
	}
	return err
}

// restored restores a backup of the store beside it.
func restored(w *world) error {
	if err := backedUp(w); err != nil {
		return err
	}
	w.next = filepath.Join(w.root, "place", "restored")
	_, err := run(w.path, "restore", w.source, w.next)
	return err
}

// another creates a second store, new or restored.
func another(w *world) error {
	if w.variant == "restored store" {
		return restored(w)
	}
	w.next = filepath.Join(w.root, "place", "second")
	w.fresh(w.next)
	return nil
}

func swap(w *world) (string, error) {
	if err := os.Rename(w.path, w.old()); err != nil {
		return "", err
	}
	return w.old(), os.Rename(w.next, w.path)
}

// linked makes the path a link to the store.
func linked(w *world) error {
	if err := another(w); err != nil {
		return err
	}
	if err := os.Rename(w.path, filepath.Join(w.root, "place", "first")); err != nil {
		return err
	}
	return os.Symlink("first", w.path)
}

func relink(w *world) (string, error) {
	link := w.path + ".new"
	if err := os.Symlink(filepath.Base(w.next), link); err != nil {
		return "", err
	}
	return filepath.Join(w.root, "place", "first"), os.Rename(link, w.path)
}

func restoreAgain(w *world) (string, error) {
	old := ""
	var err error
	if w.variant == "after rename" {
		old = w.old()
		err = os.Rename(w.path, old)
	} else {
		w.gone = true
		err = removed(w.path)
	}
	if err == nil {
		_, err = run(w.path, "restore", w.source, w.path)
	}
	return old, err
}

// archived copies the closed store.
func archived(w *world) error {
	if w.variant == "tar" {
		w.source = filepath.Join(w.root, "store.tar")
		_, err := tool(filepath.Dir(w.path), "tar", "-cf", w.source, "storage")
		return err
	}
	w.source = filepath.Join(w.root, "copy")
	_, err := tool(w.root, "cp", "-a", w.path, w.source)
	return err
}

func over(w *world) (string, error) {
	var err error
	switch w.variant {
	case "tar":
		_, err = tool(filepath.Dir(w.path), "tar", "-xf", w.source)
	case "cp -a":
		_, err = tool(w.root, "cp", "-a", w.source+"/.", w.path)
	default:
		err = synced(w.source, w.path, w.variant)
	}
	return "", err
}

// synced copies as rsync -a --checksum does: files with other bytes are written under a temporary
// name and renamed.
// "copy, removed first" is cp -a --remove-destination.
func synced(from, to, variant string) error {
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(target, info.Mode().Perm())
		}
		if variant == "copy, removed first" {
			if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return copied(name, target, info)
		}
		if same, err := equal(name, target); err != nil || same {
			return err
		}
		temp := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".x7Qz3v")
		if err := copied(name, temp, info); err != nil {
			return err
		}
		return os.Rename(temp, target)
	})
	if err != nil || !strings.HasSuffix(variant, "--delete") {
		return err
	}
	var surplus []string
	err = filepath.WalkDir(to, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		rel, rerr := filepath.Rel(to, name)
		if err = errors.Join(err, rerr); err != nil {
			return err
		}
		if _, err := os.Lstat(filepath.Join(from, rel)); errors.Is(err, fs.ErrNotExist) {
			surplus = append(surplus, name)
		}
		return nil
	})
	for _, name := range surplus {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

// equal reports whether two files exist and have the same bytes.
func equal(one, two string) (bool, error) {
	a, err := os.ReadFile(one)
	if err != nil {
		return false, err
	}
	b, err := os.ReadFile(two)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(a, b), err
}

// copied copies a file with its mode and times.
func copied(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chtimes(to, time.Time{}, info.ModTime()))
}

// wipe removes files of wal/ as a cleaner does that treats old ones as garbage.
func wipe(w *world) (string, error) {
	dir := filepath.Join(w.path, "wal")
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name, goes := e.Name(), false
		switch segment, lock := strings.HasSuffix(name, ".wal"), strings.HasSuffix(name, ".lock"); w.variant {
		case "segments":
			goes = segment
		case "all but shared":
			goes = name != "shared"
		case "all":
			goes = true
		case "locks":
			goes = lock
		case "rest":
			goes = !segment && !lock && name != "shared"
		}
		if goes {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return "", err
}

// errMount means that the system refuses a mount.
var errMount = errors.New("mount --bind was refused")

// bind mounts the second store over the first, until the end of the test.
func bind(w *world) (string, error) {
	if _, err := tool(w.root, "mount", "--bind", w.next, w.path); err != nil {
		return "", fmt.Errorf("%w: %w", errMount, err)
	}
	w.t.Cleanup(func() { _ = unbind(w) })
	return "", nil
}

// unbind uncovers the first store.
func unbind(w *world) error {
	_, err := tool(w.root, "umount", "-l", w.path)
	return err
}

// mountable returns why the system cannot mount a folder over another, "" if it can.
func mountable(t *testing.T) string {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return "mount --bind needs root on Linux"
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := errors.Join(os.Mkdir(from, 0o700), os.Mkdir(to, 0o700)); err != nil {
		return err.Error()
	}
	if out, err := tool(dir, "mount", "--bind", from, to); err != nil {
		return out + err.Error()
	}
	_, err := tool(dir, "umount", "-l", to)
	if err != nil {
		return err.Error()
	}
	return ""
}

// handSaved saves a document as an editor does: a new file, renamed to its name.
func handSaved(store, id, content string) error {
	b := fmt.Appendf(nil, "{\n  \"id\": %q,\n  \"content\": %q\n}\n", id, content)
	temp := filepath.Join(store, "memories", ".save")
	if err := os.WriteFile(temp, bytes.TrimSpace(b), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(store, "memories", id+".json"))
}
