package trace

import (
	"crypto/sha256"
	"errors"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Redacted returns a set of single versions of documents. A version is in the set if includes returns true for the
// position and the key of the version's log entry. A purge of the set keeps all other versions and all other
// documents.
func Redacted(includes func(at segment.LSN, key string) bool) *Set {
	return &Set{kind: kind.Memories, ids: map[string]bool{}, documents: map[[32]byte]bool{}, learns: pieces,
		redacted: includes}
}

// LearnVersion records the hash of a redacted version's document, and the name of the document's file. Files with the
// same bytes are then recognised as copies.
func (t *Set) LearnVersion(k *kind.Kind, id string, doc []byte) {
	t.documents[sha256.Sum256(doc)] = true
	t.names.add(k.FileName(id))
}

// redactedEntry does the work of Entry for a set of redacted versions.
func (t *Set) redactedEntry(pos segment.LSN, key string, value []byte) bool {
	if len(key) > 2 && key[0] == record.Kept {
		view, err := record.Parse(value)
		return err == nil && t.redacted(segment.LSN(view.Previous), key[1:])
	}
	return t.redacted(pos, key)
}

// redactedFile does the work of inFile for a set of redacted versions.
func (t *Set) redactedFile(fsys vfs.FS, folder, name string) (affected bool, left []byte, err error) {
	b, err := vfs.ReadFile(fsys, filepath.Join(folder, name), places.CopyMost)
	switch {
	case places.Gone(err) || errors.Is(err, vfs.ErrNotRegular):
		return false, nil, nil
	case errors.Is(err, errs.ErrTooLarge):
		t.ask(folder, name, "larger than "+human.Bytes(places.CopyMost)+", not read")
		return false, nil, nil
	case err != nil:
		return false, nil, err
	}
	if t.documents[sha256.Sum256(b)] {
		return true, nil, nil
	}
	plain, whole, archived := past.InflateCopy(b)
	if archived {
		b = plain
	}
	p, ok := t.pieceOf(name, whence(fsys, folder, name), b)
	if !ok || archived && !whole {
		return false, nil, nil
	}
	found := p.g.EraseIn(p.b, p.at, t.Entry, nil)
	if found.Wanted+found.Keyed == 0 {
		return false, nil, nil
	}
	if archived || found.Others == 0 {
		return true, nil, nil
	}
	return true, p.b, nil
}

// Stranger reports whether a purge must remove a file that is in a folder of documents and belongs to no document.
func (t *Set) Stranger(name string, b []byte) bool {
	if t.redacted != nil {
		return t.documents[sha256.Sum256(b)]
	}
	return t.Stands(name) || t.Holds(b)
}
