package notes

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/note"
)

// History yields the kept versions of the note at a path, ordered by version: the versions at the earlier paths of
// the note, and all versions at this path, including versions of other notes that were at this path earlier.
// Version.ID is the path of each version. yielded reports whether History has called yield.
func (ns *Notes) History(ctx context.Context, path string,
	yield func(history.Version, error) bool) (yielded bool, err error) {
	s, err := ns.ofPath(ctx, path)
	if err != nil {
		return false, err
	}
	next, stop := iter.Pull2(ns.earlierVersions(ctx, path, &s))
	defer stop()
	v, verr, ok := next()
	give := func(v history.Version, err error) bool {
		yielded = true
		return yield(v, err)
	}
	more := true
	ns.history.Each(ctx, ns.kind, path, func(here history.Version, err error) bool {
		for more && ok && (verr != nil || err == nil && v.LSN < here.LSN) {
			more = give(v, verr)
			v, verr, ok = next()
		}
		more = more && give(here, err)
		return more
	})
	for more && ok {
		more = give(v, verr)
		v, verr, ok = next()
	}
	return yielded, nil
}

// ofPath loads the note at a path. It returns no error if the note's sidecar is not valid.
func (ns *Notes) ofPath(ctx context.Context, path string) (state, error) {
	if err := note.CheckPath(path); err != nil {
		return state{}, err
	}
	s, err := ns.load(ctx, path)
	if err != nil && !errors.Is(err, errs.ErrInvalid) {
		return s, failed(path, err)
	}
	return s, nil
}

// earlierVersions yields the versions of a note at its earlier paths, except those at path. s is the present state of
// the note.
func (ns *Notes) earlierVersions(ctx context.Context, path string, s *state) iter.Seq2[history.Version, error] {
	return func(yield func(history.Version, error) bool) {
		more, since := true, uint64(0)
		for _, m := range s.sidecar.Moves {
			if more && m.Path != path {
				from := max(ns.began(ctx, m), since)
				ns.history.Each(ctx, ns.kind, m.Path, func(v history.Version, err error) bool {
					if err == nil && (v.LSN < from || v.LSN > m.Version) {
						return true
					}
					more = yield(v, err)
					return more
				})
			}
			since = m.Version
		}
	}
}

// lineage yields the kept versions of the note at a path. It omits the versions of other notes that were at this path.
func (ns *Notes) lineage(ctx context.Context, path string, yield func(history.Version)) error {
	s, err := ns.ofPath(ctx, path)
	if err != nil {
		return err
	}
	type span struct{ from, to uint64 }
	var here []span // of the note at this path
	since := uint64(0)
	for _, m := range s.sidecar.Moves {
		if m.Path == path {
			here = append(here, span{max(ns.began(ctx, m), since), m.Version})
		}
		since = m.Version
	}
	if len(s.sidecar.Moves) > 0 { // behind the last deletion at the path, which another note may have had meanwhile
		since = max(since, ns.began(ctx, note.Move{Path: path, Version: math.MaxUint64}))
	}
	here = append(here, span{since, math.MaxUint64})
	_, err = ns.History(ctx, path, func(v history.Version, err error) bool {
		its := func(s span) bool { return s.from <= v.LSN && v.LSN <= s.to }
		if err == nil && (v.ID != path || slices.ContainsFunc(here, its)) {
			yield(v)
		}
		return true
	})
	return err
}

// began returns the version of the last deletion at the path m.Path before m.Version, or 0 if nothing was deleted
// there. The moved note was created at this path after that deletion.
func (ns *Notes) began(ctx context.Context, m note.Move) (from uint64) {
	ns.history.Each(ctx, ns.kind, m.Path, func(v history.Version, err error) bool {
		if err == nil && v.Deleted && v.LSN < m.Version {
			from = v.LSN
		}
		return err != nil || v.LSN <= m.Version
	})
	return from
}

// At returns one version of the note at a path. The version may be at an earlier path of the note.
func (ns *Notes) At(ctx context.Context, path string, version uint64) (history.Version, error) {
	if err := note.CheckPath(path); err != nil {
		return history.Version{}, err
	}
	v, err := ns.history.At(ctx, ns.kind, path, version)
	if err == nil {
		return v, nil
	}
	s, lerr := ns.load(ctx, path)
	if lerr != nil {
		return v, failed(path, err)
	}
	for _, m := range s.sidecar.Moves {
		if version <= m.Version {
			if v, merr := ns.history.At(ctx, ns.kind, m.Path, version); merr == nil {
				return v, nil
			}
		}
	}
	return v, failed(path, err)
}
