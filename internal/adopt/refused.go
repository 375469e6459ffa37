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

// RefusedEdit is an edited file that cannot be adopted, because it is not valid, has the id of another document,
// exceeds a limit or cannot be read. The file stays unchanged. Readers get the previous version as long as the log or
// the archive has it.
type RefusedEdit struct {
	Path string // relative to the store
	Err  error  // reason why the edit cannot be adopted
}

// Refused yields the files that cannot be adopted as they are now, whichever process found or reported them. It checks
// the size and time of every file, and reads the files that differ from the index. An error, such as that of ctx, ends
// the iteration.
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

// refusal returns the reason why a file cannot be adopted; reason is nil if the file can be adopted or need not
// be. err is an error that prevents the decision.
func (ed *Adopter) refusal(ctx context.Context, k *engine.Kind, name string) (reason, err error) {
	data, info, err := k.Read(name, places.StoredMost)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil && vfs.IsStarved(err):
		return nil, err
	case err != nil:
		return err, nil
	}
	p, reason := k.Parse(data, k.IDAt(name))
	if reason != nil {
		reason = ed.engine.Kinds().Elsewhere(k, data, reason)
		p.ID, _ = k.ID(name)
	}
	if k.FileName(p.ID) != name {
		if reason == nil {
			reason = k.Misplaced(p.ID)
		}
		return reason, nil
	}
	v, err := ed.engine.Find(ctx, k, p.ID, false)
	if err == nil && ed.flusher.Ours(ctx, k, p.ID, v.LSN, info, func() ([]byte, error) { return data, nil }) {
		return nil, nil
	}
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return nil, err
	}
	if reason == nil {
		_, reason = k.ParseEdit(data, p.ID)
	}
	if reason == nil && errors.Is(err, errs.ErrNotFound) {
		reason = ed.commits.MayCreate(ctx, k, p.ID)
	}
	return reason, nil
}

// Problems returns errors for the files that this process has reported as impossible to adopt and that have not
// changed since.
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
			problems = append(problems, fmt.Errorf("%s cannot be adopted: %w", path, was.Why))
		}
	}
	if n > engine.ProblemsShown {
		problems = append(problems, fmt.Errorf("%s cannot be adopted: run memctl verify",
			human.Count(int(n-engine.ProblemsShown), "more file", "more files")))
	}
	return append(problems, ed.vanished()...)
}

// vanished returns an error for each folder that was lost by accident. A missing folder of a kind counts as lost by
// accident if the folder is created with the first document of the kind and the store has such documents. The other
// lost folders are those that rootProblems reports. No deletion of a file in such a folder is adopted.
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
