package backups

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// FAILURES 188: git switches to a branch without the store and removes the tracked files; files named by
// .gitignore stay. Neither opening the folder nor an open store creates any of the removed files again.
func TestBranchWithoutStore(t *testing.T) {
	e := fixture.NewEditing(t, 8, &varve.Options{})
	if err := e.St.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, name := range []string{"config.json", ".gitignore", "memories", "assemblies"} {
		if err := os.RemoveAll(filepath.Join(e.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (list []string) {
		entries, err := os.ReadDir(e.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range entries {
			list = append(list, d.Name())
		}
		return list
	}
	was := names()
	for i := range 8 {
		ids = append(ids, "k"+string(rune('0'+i)))
	}
	if err := adopt.NewFiles(storetest.Inner(e.St).Adopter).Settle(t.Context(), "memories", ids); err != nil {
		t.Fatal(err)
	}
	if m, err := e.St.Get(t.Context(), "k1"); err != nil || m.Content != "was 1" {
		t.Errorf("an open store still has its memories: %q, %v", m.Content, err)
	}
	if now := names(); !slices.Equal(now, was) {
		t.Errorf("%q, after reading %q", was, now)
	}
	if err := e.St.Close(); err != nil {
		t.Fatal(err)
	}
	was = names()
	if slices.Contains(was, "config.json") || slices.Contains(was, "memories") {
		t.Errorf("closing has made %q", was)
	}
	for _, o := range []*varve.Options{{}, {MustExist: true}, {NoBackground: true}} {
		var emptied *varve.EmptiedError
		if _, err := varve.Open(t.Context(), e.Dir, o); !errors.Is(err, varve.ErrNoStore) || !errors.As(err, &emptied) {
			t.Errorf("opened: %v", err)
		}
	}
	if now := names(); !slices.Equal(now, was) {
		t.Errorf("%q, after opening %q", was, now)
	}
}
