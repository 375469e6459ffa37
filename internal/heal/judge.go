package heal

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// file is what stands in a document's place.
type file struct {
	data []byte
	info vfs.Info
	hash [32]byte
	err  error
}

func (v *verify) read(k *document.Kind, name string) (f file) {
	f.data, f.info, f.err = v.in[k.At].Read(name, int64(v.s.FileLimit))
	if f.err == nil {
		f.hash = sha256.Sum256(f.data)
	}
	return f
}

func (f *file) has(line *index.Entry) bool {
	return f.err == nil && f.info.Size == line.Size && f.hash == line.ContentHash
}

func (f *file) sameTime(line *index.Entry) bool { return f.info.Mtime.UnixMicro() == line.Mtime }

// judged is what became of one file.
type judged struct {
	finding *repair.Finding
	bytes   int64
	read    bool
	more    []repair.Finding // of what was derived from it
	suspect bool             // a version from before its deletion may stand there; see revived
	err     error
}

// document compares a document with its file. line is what the set said of it when
// its swap counter stood at swaps, nil when nothing did.
func (v *verify) document(k *document.Kind, id string, line *index.Entry, swaps uint64) (j judged) {
	name := docfile.FileName(id)
	for range tries {
		flushed := v.s.Log.Flushed()
		f := v.read(k, name)
		j.bytes, j.read = int64(len(f.data)), f.err == nil
		if err := v.s.Sight(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
			j.err = err
			return j
		}
		if _, _, over := v.s.State.Overlay().Get(k.Letter, id); line != nil && !over && v.s.State.Swaps() == swaps && f.has(line) && f.sameTime(line) {
			j.finding, j.more = v.content(k, id, &f, line.Version)
			return j
		}
		list, err := v.may(k, id, flushed)
		switch {
		case errors.Is(err, errAgain):
			j.finding, j.suspect = nil, false
			continue
		case errors.Is(err, errUnjudged):
			j.finding = nil
			return j
		case err != nil:
			j.err = err
			return j
		}
		if j.finding, j.more = v.compare(k, id, &f, list, flushed); j.finding == nil {
			return j
		}
		j.suspect = began(list, flushed)
	}
	return j
}

// compare says what is wrong with a file that may hold one of these versions.
func (v *verify) compare(k *document.Kind, id string, f *file, list []standing, flushed wal.LSN) (*repair.Finding, []repair.Finding) {
	moved := false
	for i := range list {
		s := &list[i]
		switch {
		case s.absent && places.Gone(f.err):
			return nil, nil
		case s.absent || !f.has(&s.line):
		case f.sameTime(&s.line) || s.version >= flushed: // an adopted edit keeps its own time until it is flushed
			return v.content(k, id, f, s.version)
		default:
			moved = true
		}
	}
	newest := &list[0]
	if newest.version >= flushed && (v.s.Log.Unsettled() || places.Gone(f.err)) {
		// The first flush writes it again, whatever stands there. And where files
		// cannot be exchanged the place is empty while one is replaced, for as long as
		// whoever does it is stopped, or has been killed.
		return nil, nil
	}
	out := &repair.Finding{Path: k.File(id), Offset: -1, ID: id, LSN: newest.version, Next: repair.NextRepair}
	if moved {
		out.Kind, out.Err = finds(k, repair.MemoryTime), fmt.Errorf("it was moved to %s; the bytes are right", f.info.Mtime.UTC())
		out.Stake, out.Heals, out.Next = "nothing: reading it takes a little longer", repair.ByAdoption, ""
		return out, v.related(k, id, f)
	}
	if newest.absent {
		return v.stranger(k, out, f), nil
	}
	return v.classify(k, out, f, newest), nil
}

// related is relations for a file whose bytes are right.
func (v *verify) related(k *document.Kind, id string, f *file) []repair.Finding {
	c, err := v.decode(k, f.data)
	if err != nil || c.ID != id {
		return nil
	}
	return v.relations(k, id, f.hash, &c)
}

// content checks that a file that has the bytes of a version is a document, and
// this one, and what was derived from it.
func (v *verify) content(k *document.Kind, id string, f *file, version wal.LSN) (*repair.Finding, []repair.Finding) {
	c, err := v.decode(k, f.data)
	if err == nil && c.ID == id {
		return nil, v.relations(k, id, f.hash, &c)
	}
	out := &repair.Finding{Kind: finds(k, repair.MemoryInvalid), Severity: repair.Lost, Path: k.File(id), Offset: offsetOf(err), ID: id, LSN: version,
		Stake: "this " + k.Noun + ": it was stored as it stands", Heals: repair.ByHand, Next: repair.NextRepair, Err: err}
	if err == nil {
		out.Kind, out.Err = finds(k, repair.MemoryWrongID), fmt.Errorf("it holds the id %s", errs.Quote(c.ID))
	}
	return out, nil
}

// classify says what became of a file that holds none of the versions it may hold.
func (v *verify) classify(k *document.Kind, out *repair.Finding, f *file, want *standing) *repair.Finding {
	out.Stake = "this version of the " + k.Noun
	copied := v.copyOf(k, out, want)
	defer func() { out.Kind = finds(k, out.Kind) }()
	switch {
	case places.Gone(f.err):
		out.Kind, out.Err = repair.MemoryMissing, errors.New("there is no such file")
		return out
	case f.err != nil && errors.Is(f.err, errs.ErrCorrupt):
		out.Kind, out.Err = repair.MemoryEmpty, f.err
		return out
	case f.err != nil:
		out.Kind, out.Err = repair.MemoryUnreadable, f.err
		return out
	}
	c, err := v.decode(k, append([]byte(nil), f.data...))
	rot := f.sameTime(&want.line)
	out.Offset = firstDifference(f.data, copied)
	switch {
	case rot:
		out.Kind, out.Err = repair.MemoryRot, errors.New("its bytes have changed and its time has not")
		if err != nil {
			out.Err = fmt.Errorf("%w: %w", out.Err, err)
			if out.Offset < 0 {
				out.Offset = offsetOf(err)
			}
		}
	case err != nil:
		out.Kind, out.Err, out.Offset, out.Stake = repair.MemoryInvalid, err, offsetOf(err), byHand(k, out, f)
	case c.ID != out.ID:
		out.Kind, out.Offset, out.Err, out.Stake = repair.MemoryWrongID, -1, fmt.Errorf("it holds the id %s", errs.Quote(c.ID)), byHand(k, out, f)
	case v.older(f, want):
		out.Kind, out.Offset, out.Err = repair.MemoryStale, -1, fmt.Errorf("it holds an older version than %d", want.version)
	case v.fits(k, f.data) != nil:
		out.Kind, out.Offset, out.Err, out.Stake = repair.MemoryInvalid, -1, v.fits(k, f.data), byHand(k, out, f)
	default:
		out.Kind, out.Severity, out.Heals = repair.MemoryEdited, repair.Healable, repair.ByAdoption
		out.Stake, out.Offset, out.Err = "the edit", -1, fmt.Errorf("it was saved at %s by somebody else", f.info.Mtime.UTC())
	}
	return out
}

// byHand says what is at stake with a file that somebody saved, and that cannot be taken
// over as it is.
func byHand(k *document.Kind, out *repair.Finding, f *file) string {
	saved := fmt.Sprintf("what was saved in it at %s: correct the file and it is taken over", f.info.Mtime.UTC().Format("2006-01-02 15:04:05 MST"))
	if out.Severity == repair.Lost {
		return "this version of the " + k.Noun + ", of which no other copy is known, and " + saved
	}
	return saved + "; repair puts the " + k.Noun + " back and keeps the file in quarantine/"
}

// copyOf looks for the document of a version in log and archive, and says so.
func (v *verify) copyOf(k *document.Kind, out *repair.Finding, want *standing) []byte {
	out.Severity, out.Heals, out.Next = repair.Lost, "", repair.NextRepair
	doc, _, from := v.past.Document(k, out.ID, want.version, want.line.ContentHash)
	if doc != nil {
		out.Severity, out.Heals = repair.Healable, from
	}
	return doc
}

// older says whether a file holds a version from before the one it should.
func (v *verify) older(f *file, want *standing) bool {
	for at, n := want.version, 0; at != 0 && n < 1000; n++ {
		e, err := v.s.Log.ReadAt(v.ctx, at)
		if err != nil {
			if e, err = v.s.Log.ArchivedAt(v.ctx, at); err != nil {
				return false
			}
		}
		line, view, err := state.LineIn(&e)
		if err == nil && !e.Delete && f.has(&line) {
			return true
		}
		at = view.Previous
	}
	return false
}

func offsetOf(err error) int64 {
	var s *docfile.SyntaxError
	if errors.As(err, &s) {
		return s.Offset
	}
	return -1
}

func firstDifference(a, b []byte) int64 {
	if b == nil {
		return -1
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int64(i)
		}
	}
	return int64(min(len(a), len(b)))
}

// finds is what a finding of a memory's file is called of one of this kind.
func finds(k *document.Kind, of repair.Kind) repair.Kind {
	if k == document.Assemblies {
		return of.OfAssembly()
	}
	return of
}

// decode reads a document; what it returns may share bytes with data.
func (v *verify) decode(k *document.Kind, data []byte) (document.Content, error) {
	return k.Decode(data, memstore.DecodeOptions{Limits: v.s.Limits, Location: v.s.Location, Owned: true})
}

// fits says why a document may not be written by today's limits: then it is not adopted.
func (v *verify) fits(k *document.Kind, data []byte) error {
	if v.s.Fits == nil {
		return nil
	}
	return v.s.Fits(k.Letter, data)
}
