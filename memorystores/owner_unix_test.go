//go:build unix

package memorystores

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestStoresOfOthers: a store that another user has put into the folder of the stores is not served, neither found nor
// after an exchange; nothing is written into it. Those of the user whose folder it is are served. Only root can show
// it.
func TestStoresOfOthers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("only root can make a store of another user")
		return
	}
	const neighbour = 65533
	s := newSite(t, t.TempDir(), Options{})
	give := func(dir string, user int) {
		t.Helper()
		if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, user, user))
		}); err != nil {
			t.Fatal(err)
		}
	}
	mine := s.create("mine")
	s.memory(mine, "/x", "mine")
	at := func(name string) string { return filepath.Join(s.dir, name) }
	plant := func(name string) {
		t.Helper()
		st, err := small(t.Context(), at(name), false)
		if err == nil {
			err = st.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		give(at(name), neighbour)
	}
	plant("theirs")
	before, err := os.ReadFile(at("theirs/config.json"))
	if err != nil {
		t.Fatal(err)
	}
	list := func() int { return len(s.listed("")) }
	if n := list(); n != 1 {
		t.Errorf("%d stores", n)
	}
	if after, err := os.ReadFile(at("theirs/config.json")); err != nil || string(after) != string(before) {
		t.Errorf("%s, was %s: %v", after, before, err)
	}
	if err := s.stores.drop(t.Context(), mine[1:]); err != nil {
		t.Fatal(err)
	}
	give(at(mine[1:]), neighbour) // such as one that was exchanged
	s.want(404, "a", "GET", mine+"/memories", nil)
	give(at(mine[1:]), 0)
	if n := list(); n != 1 {
		t.Errorf("%d stores, mine among them again", n)
	}
	s.want(200, "a", "GET", mine+"/memories", nil)
	if err := s.stores.drop(t.Context(), mine[1:]); err != nil {
		t.Fatal(err)
	}
	give(s.dir, neighbour)
	if n := list(); n != 2 {
		t.Errorf("%d stores of the user whose folder it is", n)
	}
}
