package kind

import (
	"strings"
	"testing"
)

// tree is a Paths whose paths are the ids. Its Fold makes paths equal that differ only in case.
type tree struct{}

func (tree) Path(id string) string          { return id }
func (tree) ID(path string) (string, bool)  { return path, true }
func (tree) IsDocument(path string) bool    { return true }
func (tree) IsOwn(path string, _ bool) bool { return true }
func (tree) Tree() bool                     { return true }

type folding struct{ tree }

func (folding) Fold(path string) string { return strings.ToLower(path) }

// TestBeside verifies which documents cannot exist together, in either order.
func TestBeside(t *testing.T) {
	exact, folds := &Kind{Noun: "note", Paths: tree{}}, &Kind{Noun: "note", Paths: folding{}}
	for _, c := range []struct {
		a, b         string
		exact, folds bool
	}{
		{"a", "a", false, false}, {"a", "b", false, false}, {"a", "a/b", true, true}, {"a", "a/b/c", true, true},
		{"a/b", "a/c", false, false}, {"a/b", "ab", false, false}, {"a", "A", false, true}, {"a/b", "A/c", false, true},
		{"a", "A/b", false, true}, {"x/a", "y/A", false, false}, {"x/a/b", "x/a.b", false, false},
	} {
		for _, ids := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			for k, want := range map[*Kind]bool{exact: c.exact, folds: c.folds} {
				b := NewBeside(k, k.Folds(), ids[0], "other/one")
				other, clashes := b.Clash(ids[1])
				if clashes != want || clashes && other != ids[0] {
					t.Errorf("%s beside %s, folds %v: %q, %v", ids[1], ids[0], k.Folds(), other, clashes)
				}
				if _, again := b.Add(ids[1]); again != want {
					t.Errorf("adding %s to %s: %v", ids[1], ids[0], again)
				}
			}
		}
	}
	for other, want := range map[string]string{
		"a": "needs a folder", "a/b/c/d": "is in a folder", "A/B/c": "only in case",
	} {
		if err := folds.Clashing("a/b/c", other); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCheckID: the limits on paths apply to ids of a kind that has folders, and to its files.
func TestCheckID(t *testing.T) {
	k := &Kind{Paths: tree{}}
	for id, ok := range map[string]bool{"a/b": true, "../a": false, "a//b": false, strings.Repeat("d/", 60) + "x": false} {
		_, is := k.ID(id)
		if err := k.CheckID(id); (err == nil) != ok || is != ok || k.IsDocument(id) != ok {
			t.Errorf("%s: %v, %v, %v", id, err, is, k.IsDocument(id))
		}
	}
	if err := Memories.CheckID("../a"); err != nil {
		t.Error(err)
	}
}
