package verify

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/worklog"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// absentMost is the maximum number of keys that are remembered because the log has them and the store does not. A key
// is forgotten when its deletion is read. Further keys are not checked.
const absentMost = 1 << 20

// visit checks one entry of the log. It is called in the order of the log; end is the position and chain hash
// after the entry's frame.
func (r *row) visit(end wal.Mark, e *wal.Entry) error {
	for i, m := range r.v.marks {
		if m.LSN == end.LSN && (m.Sum == end.Sum || m.Sum == 0) { // 0: the frame there could not be read
			r.met[i] = true
		}
	}
	if e == nil {
		return nil
	}
	r.v.sum.Entries++
	if r.asIndexed(e) {
		return nil
	}
	line, kind := index.Entry{}, kind.Of(e.Key)
	_, err := state.Read(e)
	switch {
	case err != nil:
	case e.Key[0] == record.Model:
		_, err = state.ModelIn(e)
	case e.Key[0] == record.Writer, e.Key[0] == record.Purge:
		_, err = state.Check(e)
	case e.Key[0] == record.Working:
		_, _, err = worklog.Work(r.v.Source.Codec, e)
	case e.Key[0] == record.Kept:
		_, _, err = state.KeptDocument(r.v.Source.Codec, e, r.v.Source.FileLimit)
	default:
		line, err = r.v.record(kind, e)
	}
	if err != nil {
		return r.invalid(e, err)
	}
	if kind == nil {
		return nil // the files of the scopes are checked instead
	}
	return r.known(e, line)
}

// invalid reports log entry e, which must not be in a log. err is what is wrong with the entry.
func (r *row) invalid(e *wal.Entry, err error) error {
	f := r.finding(repair.EntryInvalid, e.LSN, e.Key, err)
	f.Stake = "this version"
	spilled, _ := r.v.Source.Log.Past().Place(r.v.Source.Log.Spilled() - 1)
	number, _ := r.v.Source.Log.Past().Place(e.LSN)
	if number < spilled {
		f.Remarks |= repair.Released
	}
	if e.LSN < r.v.Source.Log.Flushed() {
		f.Severity, f.Heals = repair.Healable, repair.ByFiles
	}
	return r.v.report(f)
}

// contradicts returns an error if log entry e contradicts itself: its index line and its document have embeddings of
// different dimensions. line is the index line in e, and indexed is the line of the same version in the index.
// contradicts reports only the case in which the document has the dimension of indexed and line has another one. This
// can happen if the index was rebuilt from the files.
func (r *row) contradicts(e *wal.Entry, line, indexed index.Entry) error {
	if line.Dimension == indexed.Dimension {
		return nil
	}
	doc, _, err := state.DocumentIn(r.v.Source.Codec, e, r.v.Source.FileLimit)
	if err != nil {
		return err
	}
	k := kind.Of(e.Key)
	if c, err := r.v.Decode(k, k.FileName(e.Key[1:]), doc); err != nil || len(c.Vector) != indexed.Dimension {
		return nil
	}
	return fmt.Errorf("the index line has an embedding of %d dimensions, but the document has one of %d", line.Dimension,
		indexed.Dimension)
}

// asIndexed is the fast check of a log entry. It returns true if the index has exactly the index line of the entry, and
// that line has the hash of the entry's document. If it returns false, the entry must be checked thoroughly.
func (r *row) asIndexed(e *wal.Entry) bool {
	if e.Delete || r.v.indexBad || r.set == nil || e.LSN >= r.set.LSN() {
		return false
	}
	k := kind.Of(e.Key)
	if k == nil {
		return false
	}
	view, err := state.Read(e)
	if err != nil {
		return false
	}
	if _, _, over := r.v.Source.State.Overlay().Get(k.Letter, e.Key[1:]); over {
		return false
	}
	var ok bool
	if r.indexed, ok, err = r.set.Get(r.indexed[:0], k.Section, e.Key[1:]); err != nil || !ok {
		return false
	}
	if r.finished, err = index.Finish(r.finished[:0], view.Line, e.LSN, e.Time.UnixMicro(),
		e.Writer); err != nil || !bytes.Equal(r.finished, r.indexed) {
		return false
	}
	doc, give, err := r.v.Source.Codec.Lend(r.v.ctx, &view, r.v.Source.FileLimit)
	if err != nil {
		return false
	}
	sum := sha256.Sum256(doc)
	give()
	at := bytes.Index(view.Line, []byte(hashMember)) // quotes in a string would be escaped, so this is a member
	if at < 0 {
		return false
	}
	var named [64]byte
	hex.Encode(named[:], sum[:])
	return bytes.HasPrefix(view.Line[at+len(hashMember):], named[:])
}

const hashMember = `"content_hash":"sha256:`

func (r *row) finding(kind repair.Kind, pos wal.LSN, key string, err error) repair.Finding {
	n, offset := r.v.Source.Log.Past().Place(pos)
	f := repair.Finding{Kind: kind, Severity: repair.Lost, Path: "wal/" + segment.Name(n), Offset: offset, LSN: pos,
		Next: repair.NextRepair, Err: err}
	if len(key) > 1 {
		f.ID = strings.ToValidUTF8(key[1:], "\ufffd")
	}
	return f
}

// record checks the content of a log entry, and returns the index line in it; the zero line for a deletion.
func (v *Run) record(k *kind.Kind, e *wal.Entry) (index.Entry, error) {
	line, view, err := state.LineIn(e)
	if err != nil || e.Delete {
		return index.Entry{}, err
	}
	doc, give, err := v.Source.Codec.Lend(v.ctx, &view, v.Source.FileLimit)
	if err != nil {
		return line, err
	}
	defer give()
	if int64(len(doc)) != line.Size || sha256.Sum256(doc) != line.ContentHash {
		return line, errors.New("the document does not match the size and hash in its index line")
	}
	if e.LSN < v.Source.Log.Flushed() {
		return line, nil // its file is checked instead
	}
	c, err := v.Decode(k, k.FileName(e.Key[1:]), doc)
	if err == nil && c.ID != e.Key[1:] {
		err = fmt.Errorf("the document in the log entry has another id than the key of the entry: %s",
			human.Quote(c.ID))
	}
	if err != nil {
		err = fmt.Errorf("invalid document: %w", err)
	}
	return line, err
}

// known verifies that index and overlay have the version of the document in log entry e or a newer one.
func (r *row) known(e *wal.Entry, line index.Entry) error {
	kind, id := e.Key[0], e.Key[1:]
	if r.v.indexBad {
		return nil // reported already
	}
	if e.Delete { // a deletion accounts for all entries of the key before it
		delete(r.absent, e.Key)
	}
	for try := 0; ; try++ {
		p, err := r.v.Source.State.Find(kind, id)
		switch {
		case errors.Is(err, errs.ErrNotFound):
			if !e.Delete && len(r.absent) < absentMost {
				r.absent[strings.Clone(e.Key)] = e.LSN
			}
			return nil
		case errors.Is(err, errs.ErrCorrupt):
			return nil // the index is verified as a whole later
		case err != nil:
			return err
		case p.Version == e.LSN && !e.Delete && !p.InLog && !p.Entry.Agrees(line):
			if err := r.contradicts(e, line, p.Entry); err != nil {
				return r.invalid(e, err)
			}
			f := r.finding(repair.IndexLine, e.LSN, e.Key,
				errors.New("the index line of this version differs from the log"))
			f.Path, f.Offset = index.BaseName, -1
			f.Stake, f.Severity, f.Heals, f.Next = "listing and filtering this memory", repair.Healable, repair.ByIndex,
				repair.NextRebuild
			return r.v.report(f)
		case p.Version >= e.LSN, try == tries && r.ahead(e.LSN):
			return nil
		}
		if try == tries {
			f := r.finding(repair.EntryUnknown, e.LSN, e.Key,
				fmt.Errorf("the log has version %d, but the newest version in index and overlay is %d",
					e.LSN, p.Version))
			f.Stake = "reading this version: reads return an older version, or none"
			f.Severity, f.Heals, f.Next = repair.Healable, repair.ByIndex, repair.NextRebuild
			return r.v.report(f)
		}
		if err := r.v.Source.CatchUp(r.v.ctx); err != nil {
			return err
		}
	}
}

// vanished reports the documents of which the log has an entry, but no deletion, and which are missing in index and
// overlay. First it reads the rest of the log, from the position where the first reading ended, because the deletions
// may be there.
func (r *row) vanished() error {
	if len(r.absent) == 0 || r.v.Source.Log.Damage() != nil {
		return nil
	}
	for e, err := range r.v.Source.Log.Scan(r.v.ctx, r.durable) {
		if errors.Is(err, errs.ErrTruncated) || errors.Is(err, errs.ErrCorrupt) {
			return nil // the log has released these entries; or it was damaged since, which the next run reports
		}
		if err != nil {
			return err
		}
		if e.Delete {
			delete(r.absent, e.Key)
		}
	}
	// An entry that was committed when verify began may be in the log before it is applied.
	if err := r.v.Source.CatchUp(r.v.ctx); err != nil {
		return err
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.absent),
		func(a, b string) int { return cmp.Compare(r.absent[a], r.absent[b]) }) {
		at := r.absent[key]
		n, _ := r.v.Source.Log.Past().Place(at)
		p, err := r.v.Source.State.Find(key[0], key[1:])
		if !errors.Is(err, errs.ErrNotFound) || p.Version >= at || !r.sound(n) || r.ahead(at) {
			continue
		}
		f := r.finding(repair.EntryUnknown, at, key,
			errors.New("the document is missing in the index, and the log has no deletion of the document"))
		f.Stake, f.Severity, f.Heals, f.Next = "finding this memory", repair.Healable, repair.ByIndex,
			repair.NextRebuild
		if err := r.v.report(f); err != nil {
			return err
		}
	}
	return nil
}

// ahead reports whether the log entry at position pos was not applied yet by this process. This happens while another
// process recovers the log: a process that has replayed the log by itself does not read new entries until that
// recovery ends. ahead returns false if the log is damaged, because damage also stops applying entries.
func (r *row) ahead(pos wal.LSN) bool {
	return pos >= r.v.Source.Log.Applied() && r.v.Source.Log.Damage() == nil
}

// sound reports whether all segments from number n on were read completely, so that no deletion was missed.
func (r *row) sound(n uint64) bool {
	for ; n <= r.last; n++ {
		if !r.clean[n] {
			return false
		}
	}
	return true
}
