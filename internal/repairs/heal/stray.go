package heal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// verdict is the decision of judge about a file that belongs to no document of the store. Plan and Apply both
// use it.
type verdict struct {
	heals string // as in repair.Finding; the action of the plan follows from it
	why   string // the reason for moving the file to quarantine
	id    string
	stake string // data that is at stake; "": as verify reported
	err   error  // the fault; nil: as verify reported
	whole *recovered
	back  *returned
	add   *newcomer
}

// recovered is the readable part of a file that is not a complete document.
type recovered struct {
	content kind.Content
	doc     []byte
	from    string // name of the source, log or archive, that has the whole document; "": only the file has it
}

// returned is a document whose only copy is in a file with the wrong name: the name does not match the document's id.
type returned struct {
	kind   *kind.Kind
	file   verify.File
	newest verify.Standing
	as     bool // the file has the newest version; if false, its content is adopted as a new version
}

// changedError means that a file or the store has changed since the plan was made, so that the planned action no longer
// applies.
type changedError struct{}

func (changedError) Error() string {
	return "the file or the store has changed since the plan was made; planning again"
}
func (changedError) Unwrap() error { return errNothing }

// twiceError means that a file has the same id as another file, and that the other file is adopted as a new document.
type twiceError struct{ other string } // path of the other file in the folder of the kind

func (e *twiceError) Error() string {
	return fmt.Sprintf("the file %s has the same id and is adopted instead", e.other)
}

// twice returns the path of the other file that the twiceError in err names. It returns "" if err does not contain a
// twiceError.
func twice(err error) string {
	var e *twiceError
	if errors.As(err, &e) {
		return e.other
	}
	return ""
}

var errReturned = errors.New("the memory was deleted and its file has returned; adopting it as a new version")

// isStray reports whether finding f concerns a file that belongs to no document of the store.
func isStray(f *repair.Finding) bool {
	return slices.Contains([]repair.Kind{repair.Stranger, repair.Unparsable, repair.Misplaced}, f.Kind.General())
}

// judgeFiles completes a plan with decisions that the verification does not make. For each file that belongs to no
// document, it decides from the log and the archive what to do with the file. For each document that has no copy, it
// finds out whether a part of the damaged file can be read.
func (o *Options) judgeFiles(ctx context.Context, p *repair.RepairPlan) error {
	var all []repair.Finding
	salvage := map[int]bool{} // indices in all
	due := false
	for _, a := range p.Actions {
		for _, f := range a.Findings {
			if f.Remarks&repair.Unopened == 0 && kind.At(f.Path) != nil {
				if a.Do == repair.Salvage && !isStray(&f) {
					salvage[len(all)] = true
				}
				due = due || isStray(&f) || salvage[len(all)]
			}
			all = append(all, f)
		}
	}
	if !due {
		return nil
	}
	s, err := o.Open(ctx, true)
	if err != nil {
		return nil // the plan stays as it is
	}
	defer func() { _ = s.Close() }()
	h := &healer{r: &repairer{ctx: ctx, changer: o.changer(p.Dir), o: *o}, s: s,
		v: verify.New(ctx, s.Source(), repair.VerifyOptions{Workers: 1}, nil)}
	adopted := map[string]string{} // path of the file, by kind and id
	for i := range all {
		f := &all[i]
		k := kind.At(f.Path)
		if k == nil || !isStray(f) && !salvage[i] {
			continue
		}
		name := k.Below(f.Path)
		if salvage[i] {
			if _, _, err := salvaged(h.v, k, h.v.Read(k, name).Data, f.ID); err != nil {
				f.Heals = repair.ByRecording
			}
			continue
		}
		if err := h.recall(k); err != nil {
			return err
		}
		why := reasonOf([]repair.Finding{*f})
		is, err := h.judge(k, name, "", why)
		if err == nil && is.add != nil {
			key := string(k.Letter) + is.id
			if other, ok := adopted[key]; ok {
				is, err = h.judge(k, name, other, why)
			} else {
				adopted[key] = name
			}
		}
		if errors.Is(err, errNothing) {
			continue
		}
		if err != nil {
			return err
		}
		f.Heals = is.heals
		if is.stake != "" {
			f.Stake = is.stake
		}
		if is.err != nil {
			f.Err = is.err
		}
	}
	all = append(all, p.Left...)
	return p.SetFindings(func(yield func(repair.Finding, error) bool) {
		for _, f := range all {
			if !yield(f, nil) {
				return
			}
		}
	})
}

// judge decides what to do with a file that belongs to no document of the store. other is the name of another file
// with the same id, which is adopted instead of this file; "" if there is no such file. fault is the fault that
// the verification reported. The verdict contains it as the reason if judge finds no other reason.
func (h *healer) judge(k *kind.Kind, name, other, fault string) (*verdict, error) {
	v := h.v
	f := v.Read(k, name)
	if places.Gone(f.Err) {
		return nil, errNothing
	}
	aside := func(why string) *verdict { return &verdict{heals: repair.ByMoving, why: why} }
	if f.Err != nil {
		return aside(fault), nil
	}
	c, err := v.Decode(k, name, append([]byte(nil), f.Data...))
	if err != nil {
		for _, other := range kind.Kinds { // the file may have been moved to the folder of another kind
			if c, oerr := v.Decode(other, "", append([]byte(nil), f.Data...)); other != k && oerr == nil {
				if back, err := h.judgeBack(other, &f, c.ID); back != nil || err != nil {
					return back, err
				}
			}
		}
		return h.judgeUnparsable(k, name, fault)
	}
	_, err = v.Source.State.Find(k.Letter, c.ID)
	switch {
	case err == nil && k.FileName(c.ID) == name:
		return nil, errNothing // the file has an entry by now
	case err == nil: // the document is in its place, or belongs there
		if back, err := h.judgeBack(k, &f, c.ID); back != nil || err != nil {
			return back, err
		}
		return aside(fault), nil
	case !errors.Is(err, errs.ErrNotFound):
		return nil, err
	}
	if own := k.FileName(c.ID); own != name && h.holds(k, own, c.ID) { // the file in the right place is used
		return aside(k.Elsewhere(c.ID).Error() + ", and that file exists"), nil
	}
	if other != "" && h.holds(k, other, c.ID) {
		is := aside((&twiceError{other}).Error())
		is.err = &twiceError{other}
		return is, nil
	}
	if err := v.Fits(k, c.ID, f.Data); err != nil {
		return aside(err.Error()), nil
	}
	if err := v.Creates(k, c.ID); err != nil {
		return aside(err.Error()), nil
	}
	is := &verdict{heals: repair.ByAdoption, id: c.ID, add: &newcomer{id: c.ID, file: f}}
	if list := h.known[k.At][k.FileName(c.ID)]; len(list) > 0 && list[len(list)-1].Deleted {
		is.err = errReturned // as a process that watches the files reports it
	}
	return is, nil
}

// holds reports whether the file with this name in the folder of kind k is a valid document with this id.
func (h *healer) holds(k *kind.Kind, name, id string) bool {
	f := h.v.Read(k, name)
	if f.Err != nil {
		return false
	}
	c, err := h.v.Decode(k, name, f.Data)
	return err == nil && c.ID == id
}

// judgeBack decides what to do with a file whose name does not match the id of the document in it. It does so only if
// the file is the only copy of the document, which neither the log nor the archive has. It returns nil if there is
// another copy, or if a file with the right name exists.
func (h *healer) judgeBack(k *kind.Kind, f *verify.File, id string) (*verdict, error) {
	v := h.v
	if !places.Gone(v.Read(k, k.FileName(id)).Err) {
		return nil, nil
	}
	list, err := v.May(k, id, v.Source.Log.Flushed())
	if err != nil || list[0].Absent {
		return nil, err
	}
	newest := &list[0]
	if doc, _, _ := v.Past.Document(k, id, newest.Version, newest.Line.ContentHash); doc != nil {
		return nil, nil
	}
	back := &returned{kind: k, file: *f, newest: *newest, as: f.Has(&newest.Line)}
	switch {
	case back.as:
		return &verdict{heals: repair.ByFiles, id: id, back: back,
			stake: "the " + k.Noun + "; this file is its only copy"}, nil
	case v.Fits(k, id, f.Data) != nil:
		return nil, nil
	}
	return &verdict{heals: repair.ByAdoption, id: id, back: back,
		stake: "the " + k.Noun + "; no other copy is left"}, nil
}

// judgeUnparsable decides what to do with a file that is not a document. If the index lacks the document to which
// the file's name belongs, and the log or the archive has it, the decision is to restore the document. Otherwise
// the file is moved to quarantine, with fault as the reason. judgeUnparsable does not use the readable part of the
// file, which may be one side of a conflict.
func (h *healer) judgeUnparsable(k *kind.Kind, name, fault string) (*verdict, error) {
	v := h.v
	aside := &verdict{heals: repair.ByMoving, why: fault}
	list := h.known[k.At][name]
	if len(list) == 0 {
		return aside, nil
	}
	last := list[len(list)-1]
	if _, err := v.Source.State.Find(k.Letter, last.ID); err == nil || last.Deleted {
		return aside, nil
	}
	doc, _, from := v.Past.Document(k, last.ID, last.Version, last.Hash)
	if doc == nil {
		return aside, nil
	}
	c, err := v.Decode(k, name, append([]byte(nil), doc...))
	if err != nil {
		return nil, err
	}
	return &verdict{heals: from, id: c.ID, whole: &recovered{c, doc, from},
		stake: "the " + k.Noun + ", which is missing in the index and the files"}, nil
}

// stray carries out the decision of judge about a file, if judge still decides as planned. If the file contains a new
// document, stray returns the document, and the caller must adopt it.
func (h *healer) stray(held *wal.Held, k *kind.Kind, d *repair.Done) (*newcomer, error) {
	f := &d.Findings[0]
	is, err := h.judge(k, k.Below(d.Path), twice(f.Err), reasonOf(d.Findings))
	if err != nil {
		return nil, err
	}
	unopened := f.Remarks&repair.Unopened != 0 // judge could not examine the file when the plan was made
	if unopened && is.heals == repair.ByMoving && f.Heals == repair.BySalvage {
		if is.whole, err = h.salvageable(k, d); err != nil {
			return nil, err
		}
	} else if !unopened && is.heals != f.Heals {
		return nil, changedError{}
	}
	if is.id != "" {
		d.ID = is.id
	}
	switch {
	case is.add != nil:
		is.add.d = d
		return is.add, nil
	case is.back != nil:
		return nil, h.putBack(held, d, is.back)
	case is.whole != nil:
		if err := h.salvage(held, k, d, is.whole.content, is.whole.doc, 0); err != nil {
			return nil, err
		}
		if from := is.whole.from; from != "" {
			d.Do, d.From, d.Result, d.Loses = repair.Restore, from, "from the "+from, ""
		}
		return nil, nil
	}
	return nil, h.r.setAside(d, d.Path, is.why)
}

// putBack moves a document from a file with the wrong name to the file with the name that belongs to the
// document's id.
func (h *healer) putBack(held *wal.Held, d *repair.Done, b *returned) error {
	const result = "the file name did not match the id"
	id, k := d.ID, b.kind
	if b.as {
		if err := h.restore(held, k, d, b.newest.Version, b.newest.Line.Mtime, b.file.Data, d.Path); err != nil {
			return err
		}
		d.Do = repair.Restore
		return h.r.setAside(d, d.Path, result+"; the document was restored under its own name")
	}
	_, err := h.s.Adopt(h.r.ctx, held, k.Letter, id, b.file.Data, b.file.Info.Mtime, b.newest.Version)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	d.Do = repair.Adopt
	return h.r.setAside(d, d.Path, result+"; the document was adopted under its own name")
}

// salvageable returns the readable part of a file that is not a document, for a store whose index or log may be
// incomplete. It returns nil if nothing is worth keeping, or if the store already has a document with the id in that
// part.
func (h *healer) salvageable(k *kind.Kind, d *repair.Done) (*recovered, error) {
	name := k.Below(d.Path)
	f := h.v.Read(k, name)
	c, doc, err := salvaged(h.v, k, f.Data, k.IDAt(name))
	if f.Err != nil || err != nil || k.FileName(c.ID) != name {
		return nil, nil
	}
	if _, err := h.v.Source.State.Find(k.Letter, c.ID); !errors.Is(err, errs.ErrNotFound) {
		return nil, err
	}
	return &recovered{content: c, doc: doc}, nil
}
