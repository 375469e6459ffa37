package kind

import (
	"errors"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
)

// TestTable verifies that each kind is found by its letter, section, folder and key, and that nothing else is found.
func TestTable(t *testing.T) {
	for i, k := range Kinds {
		if k.At != i || Lettered(k.Letter) != k || In(k.Section) != k || At(k.File("x")) != k || Of(k.Key("x")) != k {
			t.Errorf("%s is not found", k.Noun)
		}
		if strings.IndexByte(Reserved, k.Letter) >= 0 {
			t.Errorf("the letter of %s is reserved", k.Noun)
		}
		if id, ok := k.ID(k.FileName("notes.of-2026")); !ok || id != "notes.of-2026" {
			t.Errorf("%s: the file of an id gives %q, %v", k.Noun, id, ok)
		}
		if id, ok := k.ID(k.FileName("An id")); ok != k.Opaque {
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

// TestRegisterRefuses verifies that Register refuses a letter, a folder or a noun that is in use, and then changes
// nothing.
func TestRegisterRefuses(t *testing.T) {
	var refused []*Kind
	for _, letter := range []byte(Reserved + "ma\x00 \n\x7f\xe9") {
		refused = append(refused, &Kind{Letter: letter, Folder: "free", Noun: "free"})
	}
	for _, folder := range []string{"", "memories", "Memories", "assemblies", "working", "wal", "tmp", "quarantine",
		"backups",
		"config.json", "checkpoint", "view_index", "a/b", `a\b`} {
		refused = append(refused, &Kind{Letter: 'x', Folder: folder, Noun: "free"})
	}
	for _, noun := range []string{"", "memory", "assembly", "working memory"} {
		refused = append(refused, &Kind{Letter: 'x', Folder: "free", Noun: noun})
	}
	kinds, folders := len(Kinds), len(Folders())
	for _, k := range refused {
		k.IDName = "id"
		if err := Register(k); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("letter %q, folder %q, noun %q: %v", k.Letter, k.Folder, k.Noun, err)
		}
	}
	if len(Kinds) != kinds || len(Folders()) != folders {
		t.Errorf("%d kinds and %d folders, want %d and %d", len(Kinds), len(Folders()), kinds, folders)
	}
}
