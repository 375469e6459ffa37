package repair

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/memstore"
)

// chunk is how many files the workers take at once. What they find is reported
// in the order of the index, whoever was faster.
const chunk = 512

// suspectsMost bounds how many memories wait for one scan of the log.
const suspectsMost = 1 << 16

// entryJob is a memory whose file is due.
type entryJob struct {
	id   string
	name string // of its file
	line []byte // of the set, nil when it has none
}

// listing is the names of a folder, and which of them an entry accounts for.
type listing struct {
	names []string
	known []bool
}

func (l *listing) mark(name string) {
	if i, ok := slices.BinarySearch(l.names, name); ok {
		l.known[i] = true
	}
}

// files compares memories/ with index and overlay, in both directions. The names
// are listed first: what is listed then is known to index or overlay now, or it
// is judged by what its file says.
func (v *verify) files() error {
	names, err := v.names()
	if err != nil {
		if gone(err) && v.s.State.Live(memory) == 0 {
			return nil
		}
		return v.report(Finding{Kind: MemoryUnreadable, Severity: Lost, Path: "memories", Offset: -1, Err: err, Stake: "all memories", Next: nextRepair})
	}
	l := &listing{names: names, known: make([]bool, len(names))}
	v.total += max(int64(len(names)), v.s.State.Live(memory))
	if err := v.s.Sight(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	if err := v.indexed(l); err != nil {
		return err
	}
	if err := v.overlaid(l); err != nil {
		return err
	}
	if err := v.revived(); err != nil {
		return err
	}
	for i, name := range l.names {
		if l.known[i] || !v.o.chosen(name) {
			continue
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if err := v.unknown(name); err != nil {
			return err
		}
		v.progress(1)
	}
	return nil
}

// indexed compares every line of the set with its file.
func (v *verify) indexed(l *listing) error {
	swaps := v.s.State.Swaps()
	set := v.s.State.Set()
	if set == nil {
		return errs.ErrClosed
	}
	defer func() { _ = set.Release() }()
	w := &workers{v: v}
	defer w.wait()
	jobs := make([]entryJob, 0, chunk)
	for it, err := range set.Range(index.Memories, index.Span{}) {
		if err != nil {
			break // damaged, and reported; the files are told by the names
		}
		id := string(it.Key)
		name := docfile.FileName(id)
		l.mark(name)
		if !v.o.chosen(name) {
			v.skip()
			continue
		}
		if jobs = append(jobs, entryJob{id: id, name: name, line: bytes.Clone(it.Value)}); len(jobs) == chunk {
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
func (v *verify) overlaid(l *listing) error {
	w := &workers{v: v}
	defer w.wait()
	jobs := make([]entryJob, 0, chunk)
	for _, at := range v.s.State.Changes(0, 1<<62) {
		e, err := v.s.Log.ReadAt(v.ctx, at.Pos)
		if err != nil || len(e.Key) == 0 || e.Key[0] != memory {
			continue // spilled since: then its file is judged by what it says
		}
		id := e.Key[1:]
		name := docfile.FileName(id)
		l.mark(name)
		if _, err := v.s.State.Line(memory, id); err == nil || !v.o.chosen(name) {
			continue // compared with the set's lines
		}
		if jobs = append(jobs, entryJob{id: id, name: name}); len(jobs) == chunk {
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
func (v *verify) skip() {
	if v.done++; v.done%chunk == 0 {
		v.progress(0)
	}
}

// unknown judges a name that belongs to no entry.
func (v *verify) unknown(name string) error {
	info, err := v.memories.Stat(name)
	if gone(err) {
		return nil
	}
	out := &Finding{Kind: Foreign, Path: "memories/" + name, Offset: -1, Stake: "nothing of the store", Next: nextRepair, Err: err}
	switch {
	case err != nil:
		out.Severity = Healable
	case !info.Mode.IsRegular():
		out.Severity, out.Heals, out.Err = Healable, ByMoving, fmt.Errorf("a store does not follow it (%s)", info.Mode)
	case strings.HasSuffix(name, docfile.Extension) && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#"):
		return v.document(out, name)
	default: // editors and tools leave such beside what they save
		out.Heals, out.Err = ByMoving, errors.New("it is no memory's file")
	}
	return v.report(*out)
}

// document judges a JSON file that no entry names: made by somebody, of a memory
// that was created or deleted meanwhile, or a copy.
func (v *verify) document(out *Finding, name string) error {
	for range tries {
		flushed := v.s.Log.Flushed()
		f := v.read(name)
		if gone(f.err) {
			return nil
		}
		if err := v.s.Sight(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
			return err
		}
		*out = Finding{Path: out.Path, Offset: -1, Next: nextRepair}
		out = v.stranger(out, &f)
		if out.ID == "" {
			continue
		}
		list, err := v.may(out.ID, flushed)
		switch {
		case errors.Is(err, errAgain):
			continue
		case errors.Is(err, errUnjudged):
			return nil // index or log are damaged where they would know it, which was reported
		case err != nil:
			return err
		}
		known := len(list) > 1 || !list[0].absent
		if docfile.FileName(out.ID) != name {
			out.Kind, out.Heals = Misplaced, ByMoving
			out.Err = fmt.Errorf("it holds the id %s, whose file is %s", errs.Quote(out.ID), docfile.FileName(out.ID))
			if known {
				out.Err = fmt.Errorf("%w, which is there: the id is used twice", out.Err)
			}
			continue
		}
		if !known {
			continue
		}
		// A memory after all, created since the names were listed.
		bytes := int64(len(f.data))
		found := v.compare(out.ID, &f, list, flushed)
		if found == nil {
			v.sum.Files, v.sum.Bytes = v.sum.Files+1, v.sum.Bytes+bytes
			return nil
		}
		*out = *found
	}
	if v.s.Log.Damage() != nil || v.s.Log.Unsettled() && out.Kind == Unparsable {
		return nil
	}
	v.sum.Files++
	return v.report(*out)
}

// stranger says what a file is that no memory accounts for.
func (v *verify) stranger(out *Finding, f *file) *Finding {
	out.Severity, out.Stake, out.Heals = Healable, "a memory that the store does not know", ByAdoption
	m, err := (*memstore.Memory)(nil), f.err
	if err == nil {
		m, err = v.decode(append([]byte(nil), f.data...))
	}
	if err != nil {
		out.Kind, out.Offset, out.Err = Unparsable, offsetOf(err), err
		out.Stake, out.Heals = "nothing that the store knows of", ByMoving
		return out
	}
	out.Kind, out.ID = Stranger, m.ID
	out.Err = errors.New("index and log have no such memory: a new one, or one that was deleted")
	return out
}
