package trace

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// piece is a part of the log that is in a file in quarantine: a whole segment, or a torn tail that was cut off. b has
// the bytes. The field at is the position of the first byte in the log, and g is the geometry of the log.
type piece struct {
	g  segment.Geometry
	at segment.LSN
	b  []byte
}

// pieceOf returns the part of the log that a file in quarantine has. name is the name of the file, and b its content.
// from is the path in the store that the file had before it was moved. ok is false if the file is not a part of the
// log. A segment whose start is damaged is assumed to belong to this log.
func (t *Set) pieceOf(name, from string, b []byte) (p *piece, ok bool) {
	p = &piece{g: t.Log, b: b}
	if start, _, err := segment.ParseStart(b); err == nil {
		p.g, p.at = start.Geometry, start.Geometry.Start(start.Number)
		return p, true
	}
	if !p.g.Valid() || strings.HasSuffix(name, ".note.json") {
		return p, false
	}
	if of := tornTail.FindStringSubmatch(name); of != nil {
		at, err := strconv.ParseUint(of[2], 10, 64)
		p.at = at
		return p, err == nil
	}
	if number, ok := segment.ParseName(strings.TrimPrefix(from, "wal/")); ok {
		p.at = p.g.Start(number)
		return p, true
	}
	return p, false
}

// tornTail matches the names of torn tails in quarantine, which contain the position of the tail in the log. Names
// given by older versions have no hash.
var tornTail = regexp.MustCompile(`^([0-9a-f]{16}-)?torn-tail-([0-9]+)(\.[0-9]+)?\.bin(\.[0-9]+)?(\.part)?$`)

// fate is the decision about a part of the log in quarantine: keep it, overwrite it, rewrite it, or let the user
// decide.
type fate struct {
	has     bool   // the piece has an entry of a purged document
	left    []byte // bytes of the piece without these entries, if it also has entries of other documents
	unknown string // reason why the user must decide about the piece; "" if the user need not
}

// look decides what to do with a part of the log in quarantine, and erases the purged data in the bytes of p. A valid
// frame belongs to the document in its header, whatever other documents its text mentions. Bytes without a valid
// header (the end of a torn write, or old bytes of a recycled file) belong to no known document. Such bytes are
// treated as purged if the part of the log also has entries of a purged document, or if the bytes contain the name of
// a purged document and the part of the log has valid entries of other documents.
func (t *Set) look(p *piece) (f fate) {
	named := false
	found := p.g.EraseIn(p.b, p.at, t.Entry, func(b []byte) { named = named || t.proof(b) })
	f.has = found.Wanted+found.Keyed > 0 || named && found.Others > 0
	if found.Others > 0 {
		f.left = p.b
	}
	if !f.has && found.Unknown > 0 {
		f.unknown = fmt.Sprintf("%s of the file are in no valid entry of the log; the file also has %s of "+
			"other documents",
			human.Bytes(int64(found.Unknown)), human.Count(found.Others, "entry", "entries"))
	}
	return f
}

// replace replaces the content of the file at path, in quarantine, by b, and overwrites the old content. temp is the
// path of the temporary file for b.
func (t *Set) replace(o Options, temp, path string, b []byte) error {
	left, err := vfs.ReplaceWiped(o.FS, temp, path, path+doomedSuffix, b, o.fileMode())
	if left {
		t.unlinked = append(t.unlinked, "quarantine/"+filepath.Base(path))
	}
	return vfs.Unwiped(&t.unwiped, err)
}

// Entry reports whether the log entry at position pos belongs to one of the documents of the set. An entry of an
// assembly that has a memory of the set as a member also belongs to the set, because the entry contains the
// memory's id and a composite made of the memory's embedding. An entry of working memory belongs to the set if the
// entry contains pieces of the contents, because the contents may have been made from that entry.
func (t *Set) Entry(pos segment.LSN, key string, value []byte) bool {
	if t.redacted != nil {
		return t.redactedEntry(pos, key, value)
	}
	kept := len(key) > 2 && key[0] == record.Kept // a kept copy of one of a document's versions
	if kept {
		key = key[1:]
	}
	switch {
	case len(key) < 2:
		return false
	case key[0] == t.kind.Letter:
		return t.ids[key[1:]]
	case key[0] == record.Working && t.kind == kind.Memories:
		return t.worked(value)
	case t.kind != kind.Memories || kind.Of(key) != kind.Assemblies:
		return false
	}
	view, err := record.Parse(value)
	if err != nil {
		return false
	}
	line := view.Line
	if kept {
		if _, _, line, err = record.SplitKept(line); err != nil {
			return false
		}
	}
	members, err := assembly.MembersOf(line)
	return err == nil && slices.ContainsFunc(members, func(id string) bool { return t.ids[id] })
}

// worked reports whether a log entry of working memory contains a piece of the purged contents.
func (t *Set) worked(value []byte) bool {
	if t.content.isEmpty() {
		return false
	}
	view, err := record.Parse(value) // even for an entry that is not valid
	if err != nil {
		return false
	}
	var codec record.Codec
	codec.Bound(t.Log.Limit())
	body, err := codec.Doc(&view, places.DocumentMost)
	return err == nil && t.content.foundIn(body)
}

// proof reports whether b contains the id member or the file path of one of the documents of the set. Unlike a mere
// mention of the id, these prove that b has data of the document.
func (t *Set) proof(b []byte) bool {
	return t.members.foundIn(b) || t.inPath(b, "/")
}
