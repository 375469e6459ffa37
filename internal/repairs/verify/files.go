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

// chunk is how many files the workers take at once. What they find is reported
// in the order of the index.
const chunk = 512

// suspectsMost bounds how many documents wait for one scan of the log.
const suspectsMost = 1 << 16

// entryJob is a document whose file is due.
type entryJob struct {
	kind *kind.Kind
	id   string
	name string // of its file
	line []byte // of the set, nil when it has none
}

// listing is the names of a folder, and which of them an entry accounts for.
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

// files compares the folders of all kinds with index and overlay.
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

// folder compares one, in both directions. The names are listed first: what is
// listed then is known to index or overlay now, or it is judged by what its file
// says.
func (v *Run) folder(k *kind.Kind) error {
	names, err := v.names[k.At]()
	if err != nil && !places.Gone(err) {
		return v.report(repair.Finding{Kind: KindOf(k, repair.MemoryUnreadable), Severity: repair.Lost, Path: k.Folder,
			Offset: -1, Err: err, Stake: "all that lies there", Next: repair.NextRepair})
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
	_ = v.vectors.release() // only read
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

// indexed compares every line of the set with its file.
func (v *Run) indexed(l *listing) error {
	swaps, set := v.vectors.swaps, v.vectors.idx
	w := &workers{v: v}
	defer w.wait()
	jobs := make([]entryJob, 0, chunk)
	for it, err := range set.Range(l.kind.Section, index.Span{}) {
		if err != nil {
			break // damaged, and reported; the files are told by the names
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

// overlaid compares what the set does not have.
func (v *Run) overlaid(l *listing) error {
	w := &workers{v: v}
	defer w.wait()
	jobs := make([]entryJob, 0, chunk)
	for _, at := range v.Source.State.Changes(0, 1<<62) {
		e, err := v.Source.Log.ReadAt(v.ctx, at.Pos)
		if err != nil || len(e.Key) == 0 || e.Key[0] != l.kind.Letter {
			continue // spilled since: then its file is judged by what it says
		}
		id := e.Key[1:]
		name := l.kind.FileName(id)
		l.mark(name)
		if _, err := v.Source.State.Line(l.kind.Letter, id); err == nil || !v.o.Chosen(name) {
			continue // compared with the set's lines
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

// skip counts what is not in the sample, without a call for each.
func (v *Run) skip() {
	if v.done++; v.done%chunk == 0 {
		v.progress(0)
	}
}

// unknown judges a name that belongs to no entry.
func (v *Run) unknown(k *kind.Kind, name string) error {
	info, err := v.Folders[k.At].Stat(name)
	if places.Gone(err) {
		return nil
	}
	out := &repair.Finding{Kind: repair.Foreign, Path: k.Folder + "/" + name, Offset: -1, Stake: "nothing of the store",
		Next: repair.NextRepair, Err: err}
	switch {
	case err != nil && k.IsDocument(name):
		out.Severity = repair.Healable
	case err == nil && !info.Mode.IsRegular():
		out.Severity, out.Heals, out.Err = repair.Healable, repair.ByMoving,
			fmt.Errorf("a store does not follow it (%s)", info.Mode)
	case k.IsDocument(name):
		return v.unlisted(k, out, name)
	default: // editors and tools leave such beside what they save
		out.Heals, out.Next, out.Err = repair.ByMoving, "",
			fmt.Errorf("it is the file of no %s: what editors and tools leave may stay, or be removed", k.Noun)
	}
	return v.report(*out)
}

// unlisted judges a file named as a document that no entry names: created by hand, of a document
// that was created or deleted meanwhile, or a copy.
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
			return nil // index or log are damaged where they would know it, which was reported
		case err != nil:
			return err
		}
		known := len(list) > 1 || !list[0].Absent
		if k.FileName(out.ID) != name {
			out.Kind, out.Heals = repair.Misplaced, repair.ByMoving
			out.Err = k.Elsewhere(out.ID)
			if known {
				out.Err = fmt.Errorf("%w, which is there: the id is used twice", out.Err)
			}
			continue
		}
		if !known {
			continue
		}
		// One after all, created since the names were listed.
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

// stranger says what a file is that no entry accounts for.
func (v *Run) stranger(k *kind.Kind, out *repair.Finding, f *File) *repair.Finding {
	out.Severity, out.Stake, out.Heals = repair.Healable, "the "+k.Noun+", which the store does not know",
		repair.ByAdoption
	c, err := kind.Content{}, f.Err
	if err == nil {
		c, err = v.Decode(k, k.Below(out.Path), append([]byte(nil), f.Data...))
	}
	if err != nil {
		out.Kind, out.Offset, out.Err = repair.Unparsable, kind.OffsetOf(err), err
		out.Stake, out.Heals = "nothing that the store knows of", repair.ByMoving
		if f.Err != nil && errors.Is(f.Err, errs.ErrCorrupt) { // it is empty: what was in it, if anything, nobody has
			out.Severity, out.Stake = repair.Lost, "what it said, if it ever was a "+k.Noun+": no copy is left"
		}
		return out
	}
	if err := v.Fits(k, c.ID, f.Data); err != nil {
		if purged(out, err) {
			out.ID = c.ID
			return out
		}
		out.Kind, out.ID, out.Err = repair.Unparsable, c.ID, err
		out.Stake, out.Heals = "nothing that the store knows of", repair.ByMoving
		return out
	}
	if err := v.Creates(k, c.ID); err != nil {
		out.Kind, out.ID, out.Err = repair.Foreign, c.ID, err
		out.Stake, out.Heals = "the "+k.Noun+" in it, which the store does not know", repair.ByMoving
		return out
	}
	out.Kind, out.ID = repair.Stranger, c.ID
	out.Err = fmt.Errorf("index and log have no such %s: a new one, or one that was deleted", k.Noun)
	return out
}
