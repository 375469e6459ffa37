package commit

import (
	"context"
	"errors"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/wal"
)

// Places is the condition under which documents can be created at their paths: no other document exists whose
// path excludes theirs, as a file a excludes a file a/b.
type Places struct {
	cm       *Committer
	interest interest
	demand   wal.Precondition
}

// Places searches for existing documents that cannot coexist with the documents ids, which are to be created; see
// kind.Beside. fails has one error for each id, nil if the id can be created; an id cannot be created either if it
// cannot coexist with an earlier id of the list. The commit must consist of parts with these Places (Part.Places); End
// releases what the Places hold. If all documents of the kind are in one folder, they never exclude each other, and p
// is nil.
//
// The cost is a look-up for each folder of a path and a search below the path. If the kind has different paths that are
// compared as equal (kind.Folding), Places also reads the names in each of the folders.
func (cm *Committer) Places(ctx context.Context, k *engine.Kind, ids []string) (p *Places, fails []error, err error) {
	return cm.placesBut(ctx, k, ids, nil)
}

// placesBut does the same as Places, for a commit that also deletes documents: a document in deleted does not exclude
// any other document.
func (cm *Committer) placesBut(ctx context.Context, k *engine.Kind, ids []string,
	deleted map[string]bool) (p *Places, fails []error, err error) {
	fails = make([]error, len(ids))
	if !k.Tree() || len(ids) == 0 {
		return nil, fails, nil
	}
	eng, beside := cm.engine, kind.NewBeside(k.Kind, k.Folds())
	for i, id := range ids {
		if other, clashes := beside.Add(id); clashes {
			fails[i] = k.Clashing(id, other)
		}
	}
	p = &Places{cm: cm, interest: interest{eng.State().ObserveIDs(k.Kind, func(id string) bool {
		_, clashes := beside.Clash(id)
		return clashes
	})}}
	err = eng.CatchUp(ctx)
	p.demand = p.interest.precondition()
	if err == nil && eng.Log().AnyAhead(p.interest.Matches) {
		// The document may have been created before the interest began, which then has no key for it.
		err = eng.Log().Settle(ctx, eng.Log().Read()-1)
		p.demand = p.interest.precondition()
	}
	for i, id := range ids {
		if err != nil {
			break
		}
		var other string
		if fails[i] != nil {
			continue
		}
		if other, err = cm.inTheWay(ctx, k, id, deleted); err == nil && other != "" {
			fails[i] = k.Clashing(id, other)
		}
	}
	if err != nil {
		p.End()
		return nil, fails, err
	}
	return p, fails, nil
}

// MayCreate returns an error if the path of an existing document makes it impossible to create a document with this id.
func (cm *Committer) MayCreate(ctx context.Context, k *engine.Kind, id string) error {
	if !k.Tree() {
		return nil
	}
	other, err := cm.inTheWay(ctx, k, id, nil)
	if err == nil && other != "" {
		err = k.Clashing(id, other)
	}
	return err
}

// precondition returns the precondition with which the log refuses the commit if a document has been created whose
// path excludes one of the documents of p. For a nil p it returns the zero Precondition, which requires nothing.
func (p *Places) precondition() wal.Precondition {
	if p == nil {
		return wal.Precondition{}
	}
	return p.demand
}

// End stops watching for new documents; the watch has begun when Committer.Places returned p. p may be nil.
func (p *Places) End() {
	if p != nil {
		p.cm.engine.State().Unobserve(p.interest.Interest)
	}
}

// inTheWay returns the id of an existing document whose path excludes a document with this id; "" if no document, or
// only documents in deleted, would exclude it.
func (cm *Committer) inTheWay(ctx context.Context, k *engine.Kind, id string, deleted map[string]bool) (string, error) {
	path := k.FileName(id)
	for at := range len(path) {
		if path[at] != '/' {
			continue
		}
		above, ok := k.ID(path[:at])
		if !ok || deleted[above] {
			continue
		}
		if _, err := cm.engine.Find(ctx, k, above, false); err == nil {
			return above, nil
		} else if !errors.Is(err, errs.ErrNotFound) {
			return "", err
		}
	}
	for below, err := range cm.engine.IDs(ctx, k, engine.Filters{Prefix: id + "/", Expired: true}) {
		if err != nil || !deleted[below] {
			return below, err
		}
	}
	if !k.Folds() {
		return "", nil
	}
	one := kind.NewBeside(k.Kind, true, id)
	for parent, rest := "", id; ; {
		other, err := cm.sibling(ctx, k, parent, one, deleted)
		if other != "" || err != nil {
			return other, err
		}
		elem, below, more := strings.Cut(rest, "/")
		if !more {
			return "", nil
		}
		parent, rest = parent+elem+"/", below
	}
}

// sibling returns the id of a document in the folder parent, or below it, whose path excludes one of the documents
// that were added to b; "" if no document conflicts. Documents in deleted do not count. Of each folder directly in
// parent, sibling looks at one document only, unless that document is in deleted. parent ends with a slash.
func (cm *Committer) sibling(ctx context.Context, k *engine.Kind, parent string, b *kind.Beside,
	deleted map[string]bool) (string, error) {
	f := engine.Filters{Prefix: parent, Expired: true}
	for again := true; again; {
		again = false
		for id, err := range cm.engine.IDs(ctx, k, f) {
			if err != nil {
				return "", err
			}
			_, clashes := b.Clash(id)
			if clashes && !deleted[id] {
				return id, nil
			}
			elem, _, folder := strings.Cut(id[len(parent):], "/")
			// Skip the folder: continue behind the last document that can be in it.
			if next := parent + elem + "/\U0010FFFF"; folder && !clashes && f.After != next {
				f.After, again = next, true
				break
			}
		}
	}
	return "", nil
}
