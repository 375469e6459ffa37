package trace

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// keepOthers writes a segment or a torn tail again, with nothing of the memories, when it
// has sound entries of others; what it was is overwritten.
func (t *Set) keepOthers(o Options, folder, name string) (bool, error) {
	path := filepath.Join(folder, name)
	b, err := vfs.ReadFile(o.FS, path, places.CopyMost)
	if err != nil {
		return false, err
	}
	if found, ok := t.eraseIn(name, b); !ok || found.Others == 0 || t.proof(b) {
		return false, nil
	}
	return true, t.replace(o, path+".reduced"+doomedSuffix, path, b) // the purge that finds it overwrites it
}

// eraseIn removes the memories from a segment or a torn tail; ok is false for other bytes.
func (t *Set) eraseIn(name string, b []byte) (found segment.Erased, ok bool) {
	g, at := t.Log, uint64(0)
	if start, _, err := segment.ParseStart(b); err == nil {
		g, at = start.Geometry, start.Geometry.Start(start.Number)
	} else if _, err := fmt.Sscanf(name, "torn-tail-%d.bin", &at); err != nil || g.Size == 0 {
		return found, false
	}
	return g.EraseIn(b, at, t.Entry), true
}

// inPiece says whether a segment or a torn tail has one of them, where a word alone is no proof. A
// frame whose head is lost, the end of a torn write or what a recycled file held in an earlier life,
// does not say whose it is: then the user decides.
func (t *Set) inPiece(name string, b []byte) (is, ok bool) {
	found, ok := t.eraseIn(name, bytes.Clone(b))
	if ok && found.Wanted == 0 && found.Unknown > 0 {
		t.unread = append(t.unread, name)
	}
	return found.Wanted > 0, ok
}

// replace puts other bytes in the place of a file in quarantine, and overwrites the old ones.
func (t *Set) replace(o Options, temp, path string, b []byte) error {
	left, err := vfs.ReplaceWiped(o.FS, temp, path, path+doomedSuffix, b, o.fileMode())
	if left {
		t.unlinked = append(t.unlinked, "quarantine/"+filepath.Base(path))
	}
	return vfs.Unwiped(&t.unwiped, err)
}

// Entry says whether an entry of the log is of one of them, or of an assembly that
// had one of the memories: that has its id, and a composite made of its embedding; or
// one of working memory that has pieces of what they said, for that may be what they
// were made of.
func (t *Set) Entry(key string, value []byte) bool {
	kept := len(key) > 2 && key[0] == record.Kept // a copy of one of a document's versions
	if kept {
		key = key[1:]
	}
	switch {
	case len(key) < 2:
		return false
	case key[0] == t.letter:
		return t.ids[key[1:]]
	case key[0] == record.Working && t.letter == record.Memory:
		return t.worked(value)
	case key[0] != record.Assembly:
		return false
	}
	view, err := record.Parse(value)
	if err != nil {
		return false
	}
	line := view.Line
	if kept {
		if _, line, err = record.SplitKept(line); err != nil {
			return false
		}
	}
	members, err := assembly.MembersOf(line)
	return err == nil && slices.ContainsFunc(members, func(id string) bool { return t.ids[id] })
}

// worked says whether an entry of working memory has a piece of what they said.
func (t *Set) worked(value []byte) bool {
	if t.content.none() {
		return false
	}
	view, err := record.Parse(value) // also of an entry that is not valid
	if err != nil {
		return false
	}
	var codec record.Codec
	body, err := codec.Doc(&view, places.DocumentMost)
	return err == nil && t.content.in(body)
}

// proof says that bytes are not only a mention.
func (t *Set) proof(b []byte) bool {
	return has(b, t.members) || slices.ContainsFunc(t.names, func(n string) bool { return bytes.Contains(b, []byte(t.folder+"/"+n)) })
}
