package adopt

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/human"
)

// lostFiles are the files that went with a folder that has to exist, and are not restored yet, by the key of their
// document. Once some of them are back the folder exists, and a restoring that fails for the others, for example on a
// full disk, must not make these look like files that a user deleted. Another process does not know of them.
type lostFiles struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (l *lostFiles) add(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = map[string]bool{}
	}
	l.keys[key] = true
}

func (l *lostFiles) remove(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.keys, key)
}

func (l *lostFiles) has(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[key]
}

// lostRoots returns the folders of a kind that have to exist, and are gone or no folders: see kind.Kind.Roots.
func (ed *Adopter) lostRoots(k *engine.Kind) (lost []string, err error) {
	if k.Roots == nil {
		return nil, nil
	}
	e := ed.engine.Env()
	roots, err := k.Roots(e.FS, e.Dir)
	for _, root := range roots {
		if info, err := e.FS.Stat(k.Path(k.FileName(root))); err == nil && info.Mode.IsDir() {
			continue
		}
		lost = append(lost, root)
	}
	return lost, err
}

// inLost returns the documents, by id, in folders that have to exist and are gone, if some of ids are in them. The host
// is told of them.
func (ed *Adopter) inLost(ctx context.Context, k *engine.Kind, ids []string) (in map[string]bool, err error) {
	lost, err := ed.lostRoots(k)
	if err != nil {
		return nil, err
	}
	in = map[string]bool{}
	for _, root := range lost {
		if !slices.ContainsFunc(ids, func(id string) bool { return k.IsIn(id, root) }) {
			continue
		}
		before := len(in)
		beside, _ := k.Companion(root)
		for _, prefix := range []string{root + "/", beside + "/"} {
			for id, err := range ed.engine.IDs(ctx, k, engine.Filters{Prefix: prefix, Expired: true}) {
				if err != nil {
					return nil, err
				}
				if ed.ReallyMissing(ctx, k, id, k.FileName(id)) {
					in[id] = true
					ed.lost.add(k.Key(id))
				}
			}
		}
		ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: k.File(root), Count: len(in) - before,
			Note: "the adopted folder was missing, which is not treated as the deletion of its files; they are restored: " +
				"memctl note release moves an adopted folder out of the store"})
	}
	return in, nil
}

// rootProblems returns an error for each folder that has to exist and is gone although documents are in it.
func (ed *Adopter) rootProblems(k *engine.Kind) (problems []error) {
	lost, err := ed.lostRoots(k)
	if err != nil {
		return []error{err}
	}
	for _, root := range lost {
		n := 0
		for _, err := range ed.engine.IDs(context.Background(), k, engine.Filters{Prefix: root + "/"}) {
			if err != nil {
				break
			}
			n++
		}
		if n > 0 {
			problems = append(problems, goneProblem(k.File(root)+", an adopted folder,", n))
		}
	}
	return problems
}

func goneProblem(what string, files int) error {
	return fmt.Errorf("%s is missing, with %s: nothing is deleted, and the next read or repair restores what log and "+
		"archive have", what, human.Count(files, "file", "files"))
}
