package verify

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/repair"
)

// chunk is the number of files that the workers process at a time. Findings are reported in the
// order of the index.
const chunk = 512

// suspectsMost is the maximum number of documents that are collected for one scan of the log (see revived).
const suspectsMost = 1 << 16

// entryJob is a document in the index whose file is to be checked.
type entryJob struct {
	kind *kind.Kind
	id   string
	name string // name of the file
	line []byte // the document's line in the index; nil if it has none
}

// listing has the names of the files in a folder, and which of them belong to a document in the index.
type listing struct {
	kind  *kind.Kind
	names []string
	known []bool
}

func (l *listing) mark(name string) {
	if i, ok := slices.BinarySearch(l.names, name); ok {
		l.known[i] = true
	}
}

// files compares the document folders of all kinds with index and overlay.
func (v *Run) files() error {
	defer func() {
		_ = v.vectors.release()
		v.vectors = nil
	}()
	for _, k := range kind.Kinds {
		if err := v.folder(k); err != nil {
			return err
		}
	}
	if err := v.vectors.completeness(); err != nil {
		return err
	}
	return v.reportUnembedded()
}

// folder compares the document folder of one kind with the index and the overlay: each document must have a file, and
// each file must belong to a document. folder lists the names of the files before it compares. So a listed file
// normally belongs to a document that the index or the overlay has by then. For any other file, folder examines the
// content.
func (v *Run) folder(k *kind.Kind) error {
	names, err := v.names[k.At]()
	if err != nil && !places.Gone(err) {
		return v.report(repair.Finding{Kind: KindOf(k, repair.MemoryUnreadable), Severity: repair.Lost, Path: k.Folder,
			Offset: -1, Err: err, Stake: "all files in the folder", Next: repair.NextRepair})
	}
	l := &listing{kind: k, names: names, known: make([]bool, len(names))}
	v.total += max(int64(len(names)), v.Source.State.Live(k.Letter))
	if err := v.Source.CatchUp(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	now, err := v.vectorsNow(v.vectors)
	if err != nil {
		return err
	}
	_ = v.vectors.release() // only closes what was read
	v.vectors = now
	if err := v.indexed(l); err != nil {
		return err
	}
	if err := v.vectors.ghosts(k); err != nil {
		return err
	}
	if err := v.overlaid(l); err != nil {
		return err
	}
	if err := v.revived(); err != nil {
		return err
	}
	for i, name := range l.names {
		if l.known[i] || !v.o.Chosen(name) {
			continue
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if err := v.unknown(k, name); err != nil {
			return err
		}
		v.progress(1)
	}
	return nil
}

// indexed compares every line of the index with the document's file.
func (v *Run) indexed(l *listing) error {
	swaps, set := v.vectors.swaps, v.vectors.idx
	w := &workers{v: v}
	defer w.wait()
	jobs := make([]entryJob, 0, chunk)
	for it, err := range set.Range(l.kind.Section, index.Span{}) {
		if err != nil {
			break // damage, reported already; the remaining files are checked by their names
		}
		id := string(it.Key)
		name := l.kind.FileName(id)
		l.mark(name)
		if !v.o.Chosen(name) {
			v.skip()
			continue
		}
		if jobs = append(jobs, entryJob{kind: l.kind, id: id, name: name, line: bytes.Clone(it.Value)}); len(jobs) == chunk {
			if err := w.next(jobs, swaps); err != nil {
				return err
			}
			jobs = make([]entryJob, 0, chunk)
		}
	}
	if err := w.next(jobs, swaps); err != nil {
		return err
	}
	return w.next(nil, swaps)
}

// overlaid compares the documents that the overlay has and the index does not have with their files.
func (v *Run) overlaid(l *listing) error {
	w := &workers{v: v}
	defer w.wait()
	jobs := make([]entryJob, 0, chunk)
	for _, at := range v.Source.State.Changes(0, 1<<62) {
		e, err := v.Source.Log.ReadAt(v.ctx, at.Pos)
		if err != nil || len(e.Key) == 0 || e.Key[0] != l.kind.Letter {
			continue // spilled meanwhile: its file is judged by its content
		}
		id := e.Key[1:]
		name := l.kind.FileName(id)
		l.mark(name)
		if _, err := v.Source.State.Line(l.kind.Letter, id); err == nil || !v.o.Chosen(name) {
			continue // compared by indexed
		}
		if jobs = append(jobs, entryJob{kind: l.kind, id: id, name: name}); len(jobs) == chunk {
			if err := w.next(jobs, 0); err != nil {
				return err
			}
			jobs = make([]entryJob, 0, chunk)
		}
	}
	if err := w.next(jobs, 0); err != nil {
		return err
	}
	return w.next(nil, 0)
}

// skip counts a file that is not in the sample, and reports progress only once per chunk.
func (v *Run) skip() {
	if v.done++; v.done%chunk == 0 {
		v.progress(0)
	}
}

// unknown examines a file in a document folder that belongs to no document of the store.
func (v *Run) unknown(k *kind.Kind, name string) error {
	info, err := v.Folders[k.At].Stat(name)
	if places.Gone(err) {
		return nil
	}
	out := &repair.Finding{Kind: repair.Foreign, Path: k.Folder + "/" + name, Offset: -1, Stake: "nothing of the store",
		Next: repair.NextRepair, Err: err}
	ignored := v.Source.Ignores != nil && v.Source.Ignores(k.Letter, name)
	if k.FileWins && (!k.IsDocument(name) || ignored ||
		err == nil && (!info.Mode.IsRegular() || info.Size > k.MostBytes)) {
		return nil // the folder is that of the user too, with what is no document: links, dot files, large files
	}
	switch {
	case err != nil && k.IsDocument(name):
		out.Severity = repair.Healable
	case err == nil && !info.Mode.IsRegular():
		out.Severity, out.Heals, out.Err = repair.Healable, repair.ByMoving,
			fmt.Errorf("not a regular file (%s), never opened by the store", info.Mode)
	case k.IsDocument(name) && !ignored:
		return v.unlisted(k, out, name)
	default: // temporary and backup files of editors and tools
		out.Heals, out.Next, out.Err = repair.ByMoving, "",
			fmt.Errorf("not the file of a %s: files that editors and tools leave may stay, or be removed", k.Noun)
	}
	return v.report(*out)
}

// unlisted examines a file whose name is that of a document which the store does not have. The file may have been
// created by hand, may be a copy, or may belong to a document that was created or deleted during the verification.
func (v *Run) unlisted(k *kind.Kind, out *repair.Finding, name string) error {
	for range tries {
		flushed := v.Source.Log.Flushed()
		f := v.Read(k, name)
		if places.Gone(f.Err) {
			return nil
		}
		if err := v.Source.CatchUp(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
			return err
		}
		*out = repair.Finding{Path: out.Path, Offset: -1, Next: repair.NextRepair}
		out = v.stranger(k, out, &f)
		if out.ID == "" {
			continue
		}
		list, err := v.May(k, out.ID, flushed)
		switch {
		case errors.Is(err, errAgain):
			continue
		case errors.Is(err, errUnjudged):
			return nil // damage of index or log hides the answer, and was reported
		case err != nil:
			return err
		}
		known := len(list) > 1 || !list[0].Absent
		if k.FileName(out.ID) != name {
			out.Kind, out.Heals = repair.Misplaced, repair.ByMoving
			out.Err = k.Elsewhere(out.ID)
			if known {
				out.Err = fmt.Errorf("%w, which exists: two files have this id", out.Err)
			}
			continue
		}
		if !known {
			continue
		}
		// The document has an entry: it was created since the names were listed.
		bytes := int64(len(f.Data))
		found, _ := v.compare(k, out.ID, &f, list, flushed)
		if found == nil {
			v.sum.Files, v.sum.Bytes = v.sum.Files+1, v.sum.Bytes+bytes
			return nil
		}
		*out = *found
	}
	if v.Source.Log.Damage() != nil || v.Source.Log.Notes().Unsettled() && out.Kind == repair.Unparsable {
		return nil
	}
	v.sum.Files++
	return v.report(*out)
}

// stranger completes a finding about a file that belongs to no document of the store.
func (v *Run) stranger(k *kind.Kind, out *repair.Finding, f *File) *repair.Finding {
	out.Severity, out.Stake, out.Heals = repair.Healable, "the "+k.Noun+", which the store does not have",
		repair.ByAdoption
	c, err := kind.Content{}, f.Err
	if err == nil {
		c, err = v.Decode(k, k.Below(out.Path), append([]byte(nil), f.Data...))
	}
	if err != nil {
		out.Kind, out.Offset, out.Err = repair.Unparsable, kind.OffsetOf(err), err
		out.Stake, out.Heals = "nothing: the file does not belong to the store", repair.ByMoving
		if f.Err != nil && errors.Is(f.Err, errs.ErrCorrupt) { // the file is empty: its content, if any, is lost
			out.Severity, out.Stake = repair.Lost, "the "+k.Noun+" in the file, if there was one: no copy is left"
		}
		return out
	}
	if err := v.Fits(k, c.ID, f.Data); err != nil {
		if purged(out, err) {
			out.ID = c.ID
			return out
		}
		out.Kind, out.ID, out.Err = repair.Unparsable, c.ID, err
		out.Stake, out.Heals = "nothing: the file does not belong to the store", repair.ByMoving
		return out
	}
	if err := v.Creates(k, c.ID); err != nil {
		out.Kind, out.ID, out.Err = repair.Foreign, c.ID, err
		out.Stake, out.Heals = "the "+k.Noun+" in the file, which the store does not have", repair.ByMoving
		if k.FileWins { // it stays where it is, and is adopted once what is in its way is gone
			out.Severity, out.Heals, out.Next = repair.Info, "", ""
		}
		return out
	}
	out.Kind, out.ID = repair.Stranger, c.ID
	out.Err = fmt.Errorf("index and log do not have this %s: it is new, or was deleted", k.Noun)
	return out
}
