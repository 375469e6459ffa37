package memorystores

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
)

// looks has the clocks of a site, and looks for stores and folders to be removed.
type looks struct {
	*site
	now, up time.Time
}

func newLooks(t *testing.T, o Options) *looks {
	l := &looks{now: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), up: time.Unix(1000, 0)}
	o.Clock = func() time.Time { return l.now }
	l.site = newSite(t, t.TempDir(), o)
	l.stores.uptime = func() time.Time { return l.up }
	return l
}

// after lets time pass in which the server looks each hour.
func (l *looks) after(t *testing.T, hours int) {
	t.Helper()
	for range hours {
		l.now, l.up = l.now.Add(time.Hour), l.up.Add(time.Hour)
		l.stores.emptyTrash(t.Context())
	}
}

func (l *looks) at(name string) string { return filepath.Join(l.dir, filepath.FromSlash(name)) }

// make creates a file that was last changed long ago, and its folders.
func (l *looks) make(t *testing.T, name string) {
	t.Helper()
	path := l.at(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, p := range []string{path, filepath.Dir(path)} {
		if err := os.Chtimes(p, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *looks) has(name string) bool {
	_, err := os.Lstat(l.at(name))
	return err == nil
}

// TestNothingIsRemovedByName: the folder of the stores may be any folder of the user. What has the name of a deleted
// store, or of one that was being created, and is neither, stays.
func TestNothingIsRemovedByName(t *testing.T) {
	t.Parallel()
	l := newLooks(t, Options{Trash: time.Hour})
	const deleted = ".20010101T000000.000000Z"
	mine := []string{".new-photos/a.jpg", ".new-notes", ".trash/photos" + deleted + "/a.jpg", ".trash/letter" + deleted,
		".trash/other/b"}
	for _, name := range mine {
		l.make(t, name)
	}
	// A store that was put away by hand, and one with a file of the user.
	for _, name := range []string{"plain", "more"} {
		st, err := small(t.Context(), l.at(".trash/"+name+deleted), false)
		if err != nil {
			t.Fatal(err)
		}
		if name == "more" {
			if _, err := identify(t.Context(), st, name, l.now); err != nil {
				t.Error(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	mine = append(mine, ".trash/more"+deleted+"/thesis.tex", ".trash/plain"+deleted+"/config.json")
	l.make(t, ".trash/more"+deleted+"/thesis.tex")
	l.after(t, 50)
	for _, name := range mine {
		if !l.has(name) {
			t.Errorf("%s was removed", name)
		}
	}
}

// TestTrashIsNoLink: a trash that is a link is not followed, neither by a look nor by a deletion.
func TestTrashIsNoLink(t *testing.T) {
	t.Parallel()
	l := newLooks(t, Options{Trash: time.Hour})
	store := l.create("a")
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, l.at(trashName)); err != nil {
		t.Skip(err)
	}
	l.want(500, "a", "DELETE", store, nil)
	if !l.has(store[1:]) {
		t.Error("the store was moved away")
	}
	st, err := small(t.Context(), filepath.Join(elsewhere, "b.20010101T000000.000000Z"), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := identify(t.Context(), st, "b", l.now); err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	l.after(t, 50)
	if list, err := os.ReadDir(elsewhere); len(list) != 1 {
		t.Error(list, err)
	}
}

// TestTrashOutlivesWrongClock: a clock that is ahead when a server starts, and for less than an hour, removes no store
// before its time.
func TestTrashOutlivesWrongClock(t *testing.T) {
	t.Parallel()
	l := newLooks(t, Options{})
	l.want(200, "a", "DELETE", l.create("a"), nil)
	right := l.now
	l.now = right.AddDate(10, 0, 0)
	for range 6 {
		l.stores.emptyTrash(t.Context())
		l.now, l.up = l.now.Add(9*time.Minute), l.up.Add(9*time.Minute)
	}
	l.now = right
	l.after(t, 29*24)
	if list, err := os.ReadDir(l.at(trashName)); len(list) != 1 {
		t.Fatal(list, err)
	}
	l.after(t, 2*24)
	if list, err := os.ReadDir(l.at(trashName)); len(list) != 0 {
		t.Error(list, err)
	}
}

// TestKilledCreation: what a process has left that was killed while it created a store is removed, also if it has
// files; what a process is creating is not.
func TestKilledCreation(t *testing.T) {
	t.Parallel()
	var l *looks
	kill := true
	l = newLooks(t, Options{Open: func(ctx context.Context, dir string, mustExist bool) (*varve.Store, error) {
		st, err := small(ctx, dir, mustExist)
		if err != nil || !kill || mustExist {
			return st, err
		}
		kill = false
		if _, err := st.Notes().Write(ctx, "a/b.md", []byte("x")); err != nil {
			return nil, err
		}
		if err := st.Close(); err != nil {
			return nil, err
		}
		from, left := filepath.Dir(dir), newName+"left"
		if err := os.CopyFS(l.at(left), os.DirFS(from)); err != nil { // as it is when the process is killed now
			t.Error(err)
		}
		if err := os.Rename(l.at(left+"/"+filepath.Base(dir)), l.at(left+"/left")); err != nil {
			t.Error(err)
		}
		if err := os.Remove(l.at(left + "/" + vfs.MarkName)); err != nil {
			t.Error(err)
		}
		if err := vfs.WriteMark(vfs.OS(), l.at(left), vfs.Mark{Kind: newKind}, 0o600); err != nil {
			t.Error(err)
		}
		l.now = time.Now().UTC()
		l.stores.emptyTrash(ctx)
		if !l.has(left) || !l.has(filepath.Base(from)) {
			t.Error("removed at once")
		}
		return small(ctx, dir, mustExist)
	}})
	l.create("a")
	list, err := os.ReadDir(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), newName) && e.Name() != newName+"left" {
			t.Errorf("%s is left", e.Name())
		}
	}
	l.after(t, 3)
	if l.has(newName + "left") {
		t.Error("what a killed process has left stays")
	}
}
