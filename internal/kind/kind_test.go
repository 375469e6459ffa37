package kind

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
)

// TestTable: each kind is found by its letter, section, folder and key, and nothing else is a kind.
func TestTable(t *testing.T) {
	for i, k := range Kinds {
		if k.At != i || Lettered(k.Letter) != k || In(k.Section) != k || At(k.File("x")) != k || Of(k.Key("x")) != k {
			t.Errorf("%s is not found", k.Noun)
		}
		if strings.IndexByte(Reserved, k.Letter) >= 0 {
			t.Errorf("the letter of %s is reserved", k.Noun)
		}
		if id, ok := k.ID(k.File("notes.of-2026")); !ok || id != "notes.of-2026" {
			t.Errorf("%s: the file of an id gives %q, %v", k.Noun, id, ok)
		}
		if id, ok := k.ID(k.File("An id")); ok {
			t.Errorf("%s: a name with a hash gives the id %q", k.Noun, id)
		}
	}
	for _, letter := range []byte(Reserved + "x\x00") {
		if k := Lettered(letter); k != nil {
			t.Errorf("the letter %q is of %s", letter, k.Noun)
		}
	}
	if Of("m") != nil || Of("") != nil || At("wal/x") != nil || At("memories") != nil || In(-1) != nil {
		t.Error("something else is a kind")
	}
}

// TestRegisterRefuses: a letter means one thing.
func TestRegisterRefuses(t *testing.T) {
	for _, letter := range []byte(Reserved + "ma") {
		if err := Register(&Kind{Letter: letter, Folder: "x"}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", letter, err)
		}
	}
}
