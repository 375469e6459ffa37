package notes

import (
	"context"
	"errors"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/note"
)

// History yields the versions of the note at a path that are still kept, the oldest first. They are the versions at
// the paths that the note had before, and those at this path, including versions of notes that were deleted there.
// Version.ID is the path of the version. History reports whether there is any version.
func (ns *Notes) History(ctx context.Context, path string,
	yield func(history.Version, error) bool) (any bool, err error) {
	if err := note.CheckPath(path); err != nil {
		return false, err
	}
	s, err := ns.load(ctx, path)
	if err != nil && !errors.Is(err, errs.ErrInvalid) {
		return false, failed(path, err)
	}
	more, since := true, uint64(0)
	give := func(v history.Version, err error) bool {
		any = true
		more = yield(v, err)
		return more
	}
	for _, m := range s.sidecar.Moves {
		if more {
			from := ns.began(ctx, m)
			ns.history.Each(ctx, ns.kind, m.Path, func(v history.Version, err error) bool {
				if err == nil && (v.LSN < from || v.LSN < since || v.LSN > m.Version) {
					return true
				}
				return give(v, err)
			})
		}
		since = m.Version
	}
	if more {
		ns.history.Each(ctx, ns.kind, path, func(v history.Version, err error) bool {
			if err == nil && v.LSN < since {
				return true // of another note, that was here before this one
			}
			return give(v, err)
		})
	}
	return any, nil
}

// began returns the first version of a note at the path that it had until a move m: the version after the last
// deletion there.
func (ns *Notes) began(ctx context.Context, m note.Move) (from uint64) {
	ns.history.Each(ctx, ns.kind, m.Path, func(v history.Version, err error) bool {
		if err == nil && v.Deleted && v.LSN < m.Version {
			from = v.LSN
		}
		return err != nil || v.LSN <= m.Version
	})
	return from
}

// At returns one version of the note at a path, or at one of the paths that the note had before.
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
