package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// File is the content of a document's file as Run.Read has read it. Hash is the sha256 of Data. If Err is not nil, the
// file could not be read.
type File struct {
	Data []byte
	Info vfs.Info
	Hash [32]byte
	Err  error
}

// Read reads the file with this name in the folder of kind k. The field Err of the result has the error of reading.
func (v *Run) Read(k *kind.Kind, name string) (f File) {
	f.Data, f.Info, f.Err = v.Folders[k.At].Read(name, int64(v.Source.FileLimit))
	if f.Err == nil {
		f.Hash = sha256.Sum256(f.Data)
	}
	return f
}

// Has reports whether the file has the size and hash that an index line records.
func (f *File) Has(line *index.Entry) bool {
	return f.Err == nil && f.Info.Size == line.Size && f.Hash == line.ContentHash
}

// sameTime reports whether the modification time of the file is the one that an index line records, in
// microseconds.
func (f *File) sameTime(line *index.Entry) bool { return f.Info.Mtime.UnixMicro() == line.Mtime }

// Judged is the result of comparing one document with its file.
type Judged struct {
	Finding *repair.Finding
	bytes   int64
	read    bool
	more    []repair.Finding // findings about data derived from the document
	suspect bool             // the file may have a version from before the document's deletion; see revived
	Err     error
}

// Document compares a document with the document's file. line is the document's line in the index, read when the
// index's swap counter was swaps; nil if the index had no such line.
func (v *Run) Document(k *kind.Kind, id string, line *index.Entry, swaps uint64) (j Judged) {
	name := k.FileName(id)
	for range tries {
		flushed := v.Source.Log.Flushed()
		f := v.Read(k, name)
		j.bytes, j.read = int64(len(f.Data)), f.Err == nil
		if err := v.Source.CatchUp(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
			j.Err = err
			return j
		}
		if _, _, over := v.Source.State.Overlay().Get(k.Letter,
			id); line != nil && !over && v.Source.State.Swaps() == swaps && f.Has(line) && f.sameTime(line) {
			j.Finding, j.more = v.content(k, id, &f, line.Version)
			return j
		}
		list, err := v.May(k, id, flushed)
		switch {
		case errors.Is(err, errAgain):
			j.Finding, j.suspect = nil, false
			continue
		case errors.Is(err, errUnjudged):
			j.Finding = nil
			return j
		case err != nil:
			j.Err = err
			return j
		}
		if j.Finding, j.more = v.compare(k, id, &f, list, flushed); j.Finding == nil {
			return j
		}
		j.suspect = began(list, flushed)
	}
	return j
}

// compare checks a file that may have any of the versions in list, the newest first. It returns a finding if the file
// is damaged or has none of these versions, unless a flush will replace the file. All versions below the position
// flushed are in files. The second result is a list of findings about derived data.
func (v *Run) compare(k *kind.Kind, id string, f *File, list []Standing,
	flushed wal.LSN) (*repair.Finding, []repair.Finding) {
	moved := false
	for i := range list {
		s := &list[i]
		switch {
		case s.Absent && places.Gone(f.Err):
			return nil, nil
		case s.Absent || !f.Has(&s.Line):
		case f.sameTime(&s.Line) || s.Version >= flushed: // until it is flushed, an adopted edit keeps its own time
			return v.content(k, id, f, s.Version)
		default:
			moved = true
		}
	}
	newest := &list[0]
	if newest.Version >= flushed && (v.Source.Log.Notes().Unsettled() || places.Gone(f.Err) ||
		v.Past.Passed(list[len(list)-1].Version, func() (index.Entry, error) { return v.Line(k, id) }, f.Has)) {
		// A flush will write the file again, whatever it has now, and skips versions that a later
		// one replaces. If the file system cannot exchange files, the file is absent while it is
		// replaced, even for long if the process that replaces it is stopped or was killed.
		return nil, nil
	}
	out := &repair.Finding{Path: k.File(id), Offset: -1, ID: id, LSN: newest.Version, Next: repair.NextRepair}
	if moved {
		out.Kind, out.Err = KindOf(k, repair.MemoryTime),
			fmt.Errorf("the time of the file was changed to %s; the content is unchanged", f.Info.Mtime.UTC())
		out.Stake, out.Heals, out.Next = "nothing: reading the file takes a little longer", repair.ByAdoption, ""
		return out, v.related(k, id, f)
	}
	if newest.Absent {
		return v.stranger(k, out, f), nil
	}
	return v.classify(k, out, f, newest), nil
}

// related verifies that an undamaged file agrees with the index and with the documents that refer to it (see
// relations).
func (v *Run) related(k *kind.Kind, id string, f *File) []repair.Finding {
	c, err := v.Decode(k, k.FileName(id), f.Data)
	if err != nil || c.ID != id {
		return nil
	}
	return v.relations(k, id, f.Hash, &c)
}

// content verifies a file whose bytes are those of a version: the file must be a document with this id. It also
// compares the document with the data derived from it.
func (v *Run) content(k *kind.Kind, id string, f *File, version wal.LSN) (*repair.Finding, []repair.Finding) {
	c, err := v.Decode(k, k.FileName(id), f.Data)
	if err == nil && c.ID == id {
		return nil, v.relations(k, id, f.Hash, &c)
	}
	out := &repair.Finding{Kind: KindOf(k, repair.MemoryInvalid), Severity: repair.Lost, Path: k.File(id),
		Offset: kind.OffsetOf(err), ID: id, LSN: version,
		Stake: "this " + k.Noun + ": the store itself wrote the document in this invalid form", Heals: repair.ByHand,
		Next: repair.NextRepair, Err: err}
	if err == nil {
		out.Kind, out.Err = KindOf(k, repair.MemoryWrongID), fmt.Errorf("the file contains id %s, not %s",
			human.Quote(c.ID), human.Quote(id))
	}
	return out, nil
}

// classify completes the finding about a file whose content matches none of the versions that the file may have.
func (v *Run) classify(k *kind.Kind, out *repair.Finding, f *File, want *Standing) *repair.Finding {
	out.Stake = "this version of the " + k.Noun
	copied := v.copyOf(k, out, want)
	defer func() { out.Kind = KindOf(k, out.Kind) }()
	switch {
	case places.Gone(f.Err):
		out.Kind, out.Err = repair.MemoryMissing, kind.Gone(out.Severity == repair.Lost)
		return out
	case f.Err != nil && errors.Is(f.Err, errs.ErrCorrupt):
		out.Kind, out.Err = repair.MemoryEmpty, f.Err
		return out
	case f.Err != nil:
		out.Kind, out.Err = repair.MemoryUnreadable, v.Source.Explained(f.Err)
		return out
	}
	c, err := v.Decode(k, k.FileName(out.ID), append([]byte(nil), f.Data...))
	rot := f.sameTime(&want.Line)
	out.Offset = firstDifference(f.Data, copied)
	switch {
	case rot:
		out.Kind, out.Err = repair.MemoryRot, errors.New("the content has changed, but the time of the file has not")
		if err != nil {
			out.Err = fmt.Errorf("%w: %w", out.Err, err)
			if out.Offset < 0 {
				out.Offset = kind.OffsetOf(err)
			}
		}
	case err != nil:
		out.Kind, out.Err, out.Offset, out.Stake = repair.MemoryInvalid, err, kind.OffsetOf(err), byHand(k, out, f)
	case c.ID != out.ID:
		out.Kind, out.Offset, out.Err, out.Stake = repair.MemoryWrongID, -1,
			fmt.Errorf("the file contains id %s, not %s", human.Quote(c.ID), human.Quote(out.ID)), byHand(k, out, f)
	case !k.Opaque && v.Past.Older(want.Version, f.Has):
		out.Kind, out.Offset, out.Err = repair.MemoryStale, -1,
			fmt.Errorf("expected version %d, but the file has an older one", want.Version)
	case purged(out, v.Fits(k, out.ID, f.Data)):
	case v.Fits(k, out.ID, f.Data) != nil:
		out.Kind, out.Offset, out.Err, out.Stake = repair.MemoryInvalid, -1, v.Fits(k, out.ID, f.Data), byHand(k, out, f)
	default:
		out.Kind, out.Severity, out.Heals = repair.MemoryEdited, repair.Healable, repair.ByAdoption
		out.Stake, out.Offset, out.Err = "the edit", -1, fmt.Errorf("saved at %s by another program", f.Info.Mtime.UTC())
	}
	return out
}

// byHand returns a description of what can be lost with a file that a user saved and that cannot be adopted in its
// present form.
func byHand(k *kind.Kind, out *repair.Finding, f *File) string {
	saved := fmt.Sprintf("the edit saved at %s: correct the file, and the edit is adopted",
		f.Info.Mtime.UTC().Format("2006-01-02 15:04:05 MST"))
	if out.Severity == repair.Lost {
		return "this version of the " + k.Noun + ", which has no other known copy, and " + saved
	}
	return saved + "; repair restores the " + k.Noun + " and keeps the file in quarantine/"
}

// copyOf returns the content of a version from the log or the archive, or nil if neither has the content. It sets
// f.Severity and f.Heals according to whether and from where the content can be restored, and f.Next to
// repair.NextRepair.
func (v *Run) copyOf(k *kind.Kind, f *repair.Finding, want *Standing) []byte {
	f.Severity, f.Heals, f.Next = repair.Lost, "", repair.NextRepair
	doc, _, from := v.Past.Document(k, f.ID, want.Version, want.Line.ContentHash)
	if doc != nil {
		f.Severity, f.Heals = repair.Healable, from
	}
	return doc
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

// KindOf returns the kind of finding for documents of kind k that corresponds to memoryKind, a kind of finding for
// memories.
func KindOf(k *kind.Kind, memoryKind repair.Kind) repair.Kind {
	if k == kind.Assemblies {
		return memoryKind.OfAssembly()
	}
	return memoryKind
}

// Decode decodes the document in a file of k's folder. The result may share memory with data.
func (v *Run) Decode(k *kind.Kind, name string, data []byte) (kind.Content, error) {
	return k.Decode(data, kind.DecodeOptions{Limits: v.Source.Limits, Location: v.Source.Location, ID: k.IDAt(name),
		Owned: true})
}

// Creates returns an error if a document that the store does not have cannot be created because the path of
// another document excludes it.
func (v *Run) Creates(k *kind.Kind, id string) error {
	if v.Source.Creates == nil {
		return nil
	}
	return v.Source.Creates(k.Letter, id)
}

// Fits returns an error if the present limits do not permit writing a document: then the document is not adopted.
func (v *Run) Fits(k *kind.Kind, id string, data []byte) error {
	if v.Source.Fits == nil {
		return nil
	}
	return v.Source.Fits(k.Letter, id, data)
}
