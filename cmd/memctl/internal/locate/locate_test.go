package locate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
)

// A store without its config.json is found from inside it as before; a folder that has a
// log's lock and nothing else is none.
func TestLocateWithoutConfig(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "storage")
	st, err := varve.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, configName)); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(root, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, _, err := Nearest(sub, "VARVE_STORE", nil); err != nil || got != dir {
		t.Errorf("found %q, %v; want %s", got, err, dir)
	}
	if err := os.WriteFile(filepath.Join(dir, "checkpoint"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, err := Nearest(sub, "VARVE_STORE", nil); err == nil && got == dir {
		t.Errorf("a folder without a checkpoint was taken for a store")
	}
}

// A store is another user's by its folder, by a link that leads to it, and in a folder that others
// can write by what is in it.
func TestForeign(t *testing.T) {
	if os.Geteuid() < 0 {
		return // there are no such users
	}
	root := t.TempDir()
	dir := filepath.Join(root, "storage")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, configName), []byte(`{"varve":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "memories"), 0o700); err != nil {
		t.Fatal(err)
	}
	you := os.Geteuid()
	for _, c := range []struct {
		self Users
		want string
	}{{nil, dir}, {Users{you}, dir}, {Users{you + 1, you}, dir}, {Users{you + 1}, ""}} {
		got, foreign, err := Nearest(root, "VARVE_STORE", c.self)
		if got != c.want || (err == nil) != (c.want != "") || (len(foreign) == 0) != (c.want != "") {
			t.Errorf("%v: found %q, passed over %v, %v; want %q", c.self, got, foreign, err, c.want)
		}
		if c.want == "" && (len(foreign) != 1 || foreign[0] != (Passed{Path: dir, Owner: you})) {
			t.Errorf("passed over %v", foreign)
		}
	}
	// In a folder of a group, a log of one of its members is that member's.
	if you == 0 {
		if err := os.Mkdir(filepath.Join(dir, "wal"), 0o770); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, "wal"), 4321, -1); err != nil {
			t.Fatal(err)
		}
		for mode, want := range map[os.FileMode]int{0o700: 0, 0o770: 1} {
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			if _, foreign, _ := Nearest(root, "VARVE_STORE", Users{you}); len(foreign) != want {
				t.Errorf("mode %o: passed over %v, want %d", mode, foreign, want)
			}
		}
	}
	// One without a log, that somebody made in a folder of yours which a group may write.
	if you == 0 {
		if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{configName, "memories"} {
			if err := os.Chown(filepath.Join(dir, name), 4321, -1); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o770|os.ModeSticky); err != nil {
				t.Fatal(err)
			}
			if found, foreign, _ := Nearest(root, "VARVE_STORE", Users{you}); found != "" || len(foreign) != 1 {
				t.Errorf("%s of another user: found %q, passed over %v", name, found, foreign)
			}
			if err := os.Chown(filepath.Join(dir, name), you, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for sudo, want := range map[string]int{"": 1, "1000": 2, "-1": 1, "x": 1, "99999999999": 1} {
		n := len(Self(func(string) string { return sudo }))
		if you != 0 {
			want = 1
		}
		if n != want {
			t.Errorf("SUDO_UID=%q: %d users, want %d", sudo, n, want)
		}
	}
}
