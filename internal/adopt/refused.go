package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

// RefusedEdit is a file that somebody left as it cannot be taken over: not valid, with the
// id of another document, over a limit, or not to be read. It stays as it is, and what was
// there before it is served as far as log and archive have it.
type RefusedEdit struct {
	Path string // relative to the store
	Err  error  // why
}

// Refused yields the files that cannot be taken over as they are now, no matter which process left
// them or was told. It looks at the size and the time of every file, and reads those that are not
// what the index has. An error ends it, that of ctx among them.
func (ed *Adopter) Refused(ctx context.Context) iter.Seq2[RefusedEdit, error] {
	return engine.Reading(ctx, ed.engine, func(yield func(RefusedEdit, error) bool) {
		for _, k := range ed.engine.Present() {
			for name, err := range (&Files{ed}).Suspects(ctx, k.Name()) {
				if err == nil && (name == "" || !k.IsDocument(name)) {
					continue
				}
				var why error
				if err == nil {
					why, err = ed.refusal(ctx, k, name)
				}
				if err != nil {
					yield(RefusedEdit{}, err)
					return
				}
				if why != nil && !yield(RefusedEdit{k.Name() + "/" + name, why}, nil) {
					return
				}
			}
		}
	})
}

// refusal says why a file cannot be taken over; nil: it can, or need not be.
func (ed *Adopter) refusal(ctx context.Context, k *engine.Kind, name string) (why, err error) {
	data, info, err := k.Read(name, places.StoredMost)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil && vfs.IsStarved(err):
		return nil, err
	case err != nil:
		return err, nil
	}
	p, why := k.Parse(data, k.IDAt(name))
	if why != nil {
		why = ed.engine.Kinds().Elsewhere(k, data, why)
		p.ID, _ = k.ID(name)
	}
	if k.FileName(p.ID) != name {
		if why == nil {
			why = k.Misplaced(p.ID)
		}
		return why, nil
	}
	v, err := ed.engine.Find(ctx, k, p.ID, false)
	if err == nil && ed.flusher.Ours(ctx, k, p.ID, v.LSN, info, func() ([]byte, error) { return data, nil }) {
		return nil, nil
	}
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return nil, err
	}
	if why == nil {
		_, why = k.ParseEdit(data, p.ID)
	}
	if why == nil && errors.Is(err, errs.ErrNotFound) {
		why = ed.commits.MayCreate(ctx, k, p.ID)
	}
	return why, nil
}

// Problems are the files that this process was told of, as far as they are still so.
func (ed *Adopter) Problems() (problems []error) {
	ed.engine.Health().Mu.Lock()
	told := maps.Clone(ed.engine.Health().Told)
	ed.engine.Health().Mu.Unlock()
	n := 0
	for _, path := range slices.Sorted(maps.Keys(told)) {
		was := told[path]
		folder, name, _ := strings.Cut(path, "/")
		k := (&Files{ed}).folder(folder)
		if k == nil {
			continue
		}
		info, err := k.Stat(name)
		if err != nil || !was.Same(info) {
			continue
		}
		if n++; n <= engine.ProblemsShown {
			problems = append(problems, fmt.Errorf("%s cannot be taken over: %w", path, was.Why))
		}
	}
	if n > engine.ProblemsShown {
		problems = append(problems, fmt.Errorf("%s cannot be taken over: run memctl verify",
			human.Count(int(n-engine.ProblemsShown), "more file", "more files")))
	}
	return append(problems, ed.vanished()...)
}

// vanished returns an error for each folder of a kind that stores have only once they have such documents, and that is
// gone although some are there: an accident, nothing of which is adopted.
func (ed *Adopter) vanished() (problems []error) {
	for _, k := range ed.engine.Present() {
		n := ed.engine.State().Live(k.Letter)
		if err := k.Check(); k.Feature != 0 && n > 0 && errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, goneProblem(k.Name(), int(n)))
			continue
		}
		problems = append(problems, ed.rootProblems(k)...)
	}
	return problems
}
