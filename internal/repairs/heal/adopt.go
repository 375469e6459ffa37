package heal

import (
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

// Limits for the files that are adopted in one commit: the number of files, and the bytes of their documents.
const (
	adoptMost  = 512
	adoptBytes = 4 << 20
)

// together returns the number of actions at the start of list that adopt files and that fit into one commit together.
func together(list []repair.Action) int {
	edits := func(a *repair.Action) bool { return a.Findings[0].Kind.General() == repair.MemoryEdited }
	first := &list[0]
	n := 1
	for first.Do == repair.Adopt && n < min(len(list), adoptMost) && list[n].Do == repair.Adopt &&
		kind.At(list[n].Path) == kind.At(first.Path) && edits(&list[n]) == edits(first) {
		n++
	}
	return n
}

// adoptAll carries out actions that adopt files, and returns the error of each action. list is a group of actions that
// fit into one commit: see the function together.
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

// all returns a list of n elements, each of which is err.
func all(n int, err error) []error {
	list := make([]error, n)
	for i := range list {
		list[i] = err
	}
	return list
}

// edited adopts files that a user has edited. It makes the store read each document: when the store reads an edited
// file, it also decides whether to adopt the edit.
func (h *healer) edited(k *kind.Kind, list []*repair.Done) []error {
	fails := make([]error, len(list))
	var due []int
	var judged []*Judgement
	for i, d := range list {
		if fails[i] = h.stands(k, d.ID); fails[i] == nil {
			due, judged = append(due, i), append(judged, &Judgement{ID: d.ID})
		}
	}
	if len(due) == 0 {
		return fails
	}
	h.s.Judge(h.r.ctx, k.Letter, judged)
	for n, j := range judged {
		i := due[n]
		fails[i] = j.Err
		switch {
		case j.Version != 0: // or a still newer version
			list[i].Result = fmt.Sprintf("now version %d", j.Version)
		case j.Err == nil:
			list[i].Result = "the edit was based on an older version; the present version is kept"
		}
	}
	return fails
}

// stands returns errNothing if the store does not have the document with this id, or if the document has no file; nil
// if the document and its file exist.
func (h *healer) stands(k *kind.Kind, id string) error {
	_, err := h.v.Source.State.Find(k.Letter, id)
	if err == nil {
		_, err = h.r.fs.Stat(h.r.path(k.Folder, k.FileName(id)))
	}
	if errors.Is(err, errs.ErrNotFound) || places.Gone(err) {
		return errNothing
	}
	return err
}

// newcomer is a document that is in a file but not in the store, and is about to be adopted.
type newcomer struct {
	d    *repair.Done
	id   string
	file verify.File
}

// strays decides what to do with each file that belongs to no document of the store, and commits the files that are new
// documents. It returns the error of each file.
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

// adoptNew commits new documents that were found in files, and returns the error of each. After that, a file
// whose name does not match the document's id is moved to quarantine.
func (h *healer) adoptNew(held *wal.Held, k *kind.Kind, list []*newcomer) []error {
	if len(list) == 0 {
		return nil
	}
	docs := make([]*Adoption, len(list))
	for i, a := range list {
		docs[i] = &Adoption{ID: a.id, Doc: a.file.Data, Mtime: a.file.Info.Mtime}
	}
	h.s.AdoptNew(h.r.ctx, held, k.Letter, docs)
	fails := make([]error, len(list))
	for i, doc := range docs {
		if fails[i] = doc.Err; doc.Err == nil {
			list[i].d.Do, list[i].d.Result = repair.Adopt, fmt.Sprintf("now version %d", doc.Version)
		}
	}
	for i, a := range list {
		if fails[i] == nil && !a.inPlace() {
			adopted := a.d.Result
			fails[i] = h.r.setAside(a.d, a.d.Path,
				"the file name did not match the id; the document was adopted under its own name")
			a.d.Result = adopted + "; " + a.d.Result
		}
	}
	return fails
}

func (a *newcomer) inPlace() bool {
	k := kind.At(a.d.Path)
	return k != nil && k.File(a.id) == a.d.Path
}
