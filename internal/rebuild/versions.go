package rebuild

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// versions finds the versions of documents while an index is built from their files. The document in a file
// gets the version that was written with its bytes, according to the log, the index that is being replaced, or
// a backup of that index. If none of them has a version with these bytes, the version is unknown.
type versions struct {
	mk     *Maker
	recent map[string]wal.LSN // newest versions in the log, by key
	// newest versions in the log with hashes, by key; both maps are used only if the present index does not have the
	// version
	logged map[string]logged
	older  []*index.Set
}

// logged is the newest version of a document in the log and the archive, together with the hash of that version's
// bytes.
type logged struct {
	known
	sum [32]byte
}

func (mk *Maker) versions(recent []index.Change) *versions {
	v := &versions{mk: mk, recent: map[string]wal.LSN{}}
	for _, c := range recent {
		if k := mk.engine.Kinds().In(c.Section); k != nil && !c.Deleted {
			v.recent[k.Key(c.ID)] = c.Version
		}
	}
	return v
}

func (v *versions) findByHash(ctx context.Context, k *engine.Kind, id string, sum [32]byte) (known, error) {
	if at := v.recent[k.Key(id)]; at != 0 {
		if is, _, err := v.mk.engine.Frame(ctx, k, id, at); err == nil && is.Line.ContentHash == sum {
			return knownOf(at, &is.Line), nil
		}
	}
	line, err := v.mk.engine.State().Line(k.Letter, id)
	switch {
	case err == nil && line.ContentHash == sum:
		return knownOf(line.Version, &line), nil
	case err == nil, !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNotFound):
		return known{}, passingOnly(err)
	}
	if v.logged == nil {
		if err := errors.Join(v.openOlder(), v.readLog(ctx)); err != nil {
			return known{}, err
		}
	}
	if is := v.logged[k.Key(id)]; is.sum == sum {
		return is.known, nil
	}
	for _, set := range v.older {
		b, ok, err := set.Get(nil, k.Section, id)
		if err != nil || !ok {
			continue // damaged there as well
		}
		if line, err := index.ParseLine(b); err == nil && line.ContentHash == sum {
			return knownOf(line.Version, &line), nil
		}
	}
	return known{}, nil
}

// passingOnly returns err if the cause of err may be temporary, and nil otherwise. A file that cannot be read now may
// still have a version; a damaged file has none.
func passingOnly(err error) error {
	if err == nil || errors.Is(err, errs.ErrCorrupt) {
		return nil
	}
	return err
}

// openOlder opens the backups of the index, the newest first. It ignores a backup that cannot be opened, unless this
// process lacks a resource at the moment: then it returns the error.
func (v *versions) openOlder() error {
	names, err := v.mk.olderIndexes()
	if err != nil {
		return err
	}
	for _, name := range slices.DeleteFunc(names, func(name string) bool { return name == index.BaseName }) {
		if set, err := v.mk.openOlder(name, uuid.UUID(v.mk.engine.Log().UUID()).String()); err == nil {
			v.older = append(v.older, set)
		} else if starved(err) {
			return err
		}
	}
	return nil
}

// readLog collects the newest versions from log and archive; damaged or missing parts are ignored.
func (v *versions) readLog(ctx context.Context) error {
	v.logged = map[string]logged{}
	for e, err := range v.mk.engine.Log().Past().Entries(ctx, wal.Mark{LSN: 0}, v.mk.engine.Log().Durable()) {
		if err != nil {
			if ctx.Err() != nil || !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrTruncated) {
				return err
			}
			continue
		}
		if v.mk.engine.Kinds().Of(e.Key) == nil {
			continue
		}
		if e.Delete {
			delete(v.logged, e.Key)
			continue
		}
		view, err := state.Read(&e)
		if err != nil {
			continue
		}
		if line, err := index.ParseLine(view.Line); err == nil {
			line.By = e.Writer
			v.logged[e.Key] = logged{knownOf(e.LSN, &line), line.ContentHash}
		}
	}
	return nil
}

func (v *versions) release() {
	for _, set := range v.older {
		_ = set.Release()
	}
}
