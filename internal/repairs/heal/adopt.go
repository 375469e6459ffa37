package heal

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/journal"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// Bounds on the files that are adopted together: what their documents take in memory, and
// how many a kill leaves without the version that an undo would take back.
const (
	adoptMost  = 512
	adoptBytes = 4 << 20
)

// together is how many of the first actions are adoptions that one commit may take.
func together(list []repair.Action) int {
	edits := func(a *repair.Action) bool { return a.Findings[0].Kind.General() == repair.MemoryEdited }
	first := &list[0]
	n := 1
	for first.Do == repair.Adopt && n < min(len(list), adoptMost) && list[n].Do == repair.Adopt && kind.At(list[n].Path) == kind.At(first.Path) && edits(&list[n]) == edits(first) {
		n++
	}
	return n
}

// adoptAll does actions that together has found to go together, and gives the error of each.
func (h *healer) adoptAll(list []*repair.Done) []error {
	if d := h.v.Source.Log.Damage(); d != nil {
		return all(len(list), fmt.Errorf("the log is damaged: %w", d))
	}
	k := kind.At(list[0].Path)
	if list[0].Findings[0].Kind.General() == repair.MemoryEdited {
		return h.edited(k, list)
	}
	if err := h.recall(k); err != nil {
		return all(len(list), err)
	}
	held, err := h.v.Source.Log.LockFlush(h.r.ctx)
	if err != nil {
		return all(len(list), err)
	}
	defer held.Unlock()
	return h.strays(held, k, list)
}

// all is the same error for each.
func all(n int, err error) []error {
	list := make([]error, n)
	for i := range list {
		list[i] = err
	}
	return list
}

// edited lets the store judge edits as it does when somebody reads them.
func (h *healer) edited(k *kind.Kind, list []*repair.Done) []error {
	fails := make([]error, len(list))
	var due []int
	var judged []*Judgement
	var changes []journal.Change
	for i, d := range list {
		was, version, err := h.stands(k, d.ID)
		if err != nil {
			fails[i] = err
			continue
		}
		due, judged = append(due, i), append(judged, &Judgement{ID: d.ID})
		changes = append(changes, journal.Change{Do: d.Do, Path: k.File(d.ID), Before: was, ID: d.ID, Was: version, Any: true})
	}
	if len(due) == 0 {
		return fails
	}
	if err := h.r.Manifest.Intend(changes...); err != nil {
		return all(len(list), err)
	}
	h.s.Judge(h.r.ctx, k.Letter, judged)
	var became []journal.Change
	for n, j := range judged {
		i := due[n]
		fails[i] = j.Err
		switch {
		case j.Version != 0: // whatever others have made of it since
			list[i].Result = fmt.Sprintf("it is version %d now", j.Version)
			became = append(became, journal.Change{N: changes[n].N, Was: j.Was, Now: j.Version})
		case j.Err == nil:
			list[i].Result = "it was made of an older version than the present one, which stays"
		}
	}
	return h.wrote(fails, became)
}

// stands is what stands in the file of a document, and its newest version.
func (h *healer) stands(k *kind.Kind, id string) (*journal.Stands, uint64, error) {
	place, err := h.v.Source.State.Find(k.Letter, id)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, 0, journal.ErrNothing
	}
	if err != nil {
		return nil, 0, err
	}
	was, err := journal.StandsAt(h.r.o.FS, h.r.Path(k.Folder, k.FileName(id)))
	if err == nil && was == nil {
		err = journal.ErrNothing
	}
	return was, place.Version, err
}

// wrote writes down which versions changes have led to.
func (h *healer) wrote(fails []error, became []journal.Change) []error {
	if len(became) == 0 {
		return fails
	}
	if err := h.r.Manifest.Write(became...); err != nil {
		return all(len(fails), err)
	}
	return fails
}

// newcomer is a document that the store does not know, in a file.
type newcomer struct {
	d    *repair.Done
	id   string
	file verify.File
}

// strays judges files that no entry accounts for, and adopts those that are new.
func (h *healer) strays(held *wal.Held, k *kind.Kind, list []*repair.Done) []error {
	fails := make([]error, len(list))
	if err := h.v.Source.CatchUp(h.r.ctx); err != nil {
		return all(len(list), err)
	}
	var due []int
	var some []*newcomer
	bytes := 0
	adopt := func() {
		for n, err := range h.adoptNew(held, k, some) {
			fails[due[n]] = err
		}
		due, some, bytes = nil, nil, 0
	}
	for i, d := range list {
		a, err := h.stray(held, k, d)
		if a != nil && slices.ContainsFunc(some, func(b *newcomer) bool { return b.id == a.id }) {
			adopt() // then it is judged by what became of the first: one commit has an id once
			if err = h.v.Source.CatchUp(h.r.ctx); err == nil {
				a, err = h.stray(held, k, d)
			}
		}
		if fails[i] = err; err == nil && a != nil {
			due, some = append(due, i), append(some, a)
			if bytes += len(a.file.Data); bytes >= adoptBytes {
				adopt()
			}
		}
	}
	adopt()
	return fails
}

// adoptNew takes files into the log as documents, and gives the error of each; one that
// lies under another name is set aside then.
func (h *healer) adoptNew(held *wal.Held, k *kind.Kind, list []*newcomer) []error {
	if len(list) == 0 {
		return nil
	}
	changes := make([]journal.Change, len(list))
	docs := make([]*Adoption, len(list))
	for i, a := range list {
		changes[i] = journal.Change{Do: repair.Adopt, Path: k.File(a.id), ID: a.id, Any: true}
		if a.inPlace() {
			changes[i].Before = &journal.Stands{Size: a.file.Info.Size, Mtime: a.file.Info.Mtime.UTC(), Hash: fmt.Sprintf("sha256:%x", a.file.Hash)}
		}
		changes[i].After = &journal.Stands{Size: int64(len(a.file.Data)), Hash: fmt.Sprintf("sha256:%x", a.file.Hash)}
		docs[i] = &Adoption{Doc: a.file.Data, Mtime: a.file.Info.Mtime}
	}
	if err := h.r.Manifest.Intend(changes...); err != nil {
		return all(len(list), err)
	}
	h.s.AdoptNew(h.r.ctx, held, k.Letter, docs)
	fails := make([]error, len(list))
	var became []journal.Change
	for i, doc := range docs {
		if fails[i] = doc.Err; doc.Err == nil {
			list[i].d.Do, list[i].d.Result = repair.Adopt, fmt.Sprintf("it is version %d", doc.Version)
			became = append(became, journal.Change{N: changes[i].N, Now: doc.Version})
		}
	}
	fails = h.wrote(fails, became)
	for i, a := range list {
		if fails[i] == nil && !a.inPlace() {
			adopted := a.d.Result
			fails[i] = h.r.Aside(a.d, a.d.Path, "the file name did not match the id; it was adopted under its own")
			a.d.Result = adopted + "; " + a.d.Result
		}
	}
	return fails
}

func (a *newcomer) inPlace() bool {
	k := kind.At(a.d.Path)
	return k != nil && k.FileName(a.id) == path.Base(a.d.Path)
}
