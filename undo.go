package varve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
)

// Undelete restores the last version of a deleted memory, no matter whether a call, an edit by hand, a limit or its
// expiry has deleted it. The vector of the memory is restored too, unless the store has changed its model since. An
// expires_at in the past is not restored. The result has the new Version. If the memory is not deleted, the error is
// ErrInvalid. If the id is unknown, the error is ErrNotFound. If the version that was deleted is not kept, the error is
// a *NoVersionError, even if older versions are kept; Revert restores older versions.
func (st *Store) Undelete(ctx context.Context, id string) (Memory, error) {
	v, err := st.deleted(ctx, st.inner.Engine.Kinds().Memories, id)
	if err != nil {
		return Memory{}, err
	}
	return st.putBack(ctx, &v, IfAbsent())
}

// Revert restores an earlier version of a memory, as a new version, also if the memory is deleted. Undelete explains
// which members are restored. If the version does not exist, the error is that of GetAt. If the memory was changed
// meanwhile, the error is ErrConflict. If the version is a deletion, the error is ErrInvalid.
func (st *Store) Revert(ctx context.Context, id string, version uint64) (Memory, error) {
	v, now, err := st.earlier(ctx, st.inner.Engine.Kinds().Memories, id, version)
	if err != nil {
		return Memory{}, err
	}
	return st.putBack(ctx, &v, now)
}

func (st *Store) putBack(ctx context.Context, v *Version, cond PutOption) (Memory, error) {
	m, err := v.Decode()
	if err != nil {
		return m, err
	}
	if !m.ExpiresAt.IsZero() && !st.inner.Engine.Env().Clock().Before(m.ExpiresAt) {
		m.ExpiresAt = time.Time{}
	}
	if st.inner.Vectors.Model().LSN > v.LSN {
		m.Embedding = nil
	}
	return st.Put(ctx, m, cond)
}

// Undelete restores the last version of a deleted assembly, without the members that no longer exist; see
// Store.Undelete.
func (asm Assemblies) Undelete(ctx context.Context, id string) (Assembly, error) {
	v, err := asm.st.deleted(ctx, asm.st.inner.Engine.Kinds().Assemblies, id)
	if err != nil {
		return Assembly{}, err
	}
	return asm.putBack(ctx, &v, IfAbsent())
}

// Revert restores a version of an assembly, without the members that no longer exist; see Store.Revert.
func (asm Assemblies) Revert(ctx context.Context, id string, version uint64) (Assembly, error) {
	v, now, err := asm.st.earlier(ctx, asm.st.inner.Engine.Kinds().Assemblies, id, version)
	if err != nil {
		return Assembly{}, err
	}
	return asm.putBack(ctx, &v, now)
}

func (asm Assemblies) putBack(ctx context.Context, v *Version, cond PutOption) (Assembly, error) {
	a, err := v.DecodeAssembly()
	if err != nil {
		return a, err
	}
	for {
		b, err := asm.Put(ctx, a, cond)
		var missing *errs.MissingMembersError
		if !errors.As(err, &missing) || a.Remove(slices.Clone(missing.IDs)...) == 0 {
			return b, err
		}
	}
}

// deleted returns the last version of a document that is deleted, or has expired.
func (st *Store) deleted(ctx context.Context, k *engine.Kind, id string) (last Version, err error) {
	var end Version
	var first uint64
	var since error // the error of reading the part of the log after end; nil if that part was read
	for v, verr := range st.versionsOf(ctx, k, id) {
		if since = verr; verr != nil {
			err = errors.Join(err, verr)
			continue
		}
		if end = v; !v.Deleted {
			if last = v; first == 0 {
				first = v.LSN
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return last, ctx.Err()
	case end.LSN == 0:
		if errors.Is(err, errs.ErrTruncated) && !errors.Is(err, errs.ErrNotFound) {
			err = fmt.Errorf("%s %s: %w; all its versions may be lost: %w", k.Noun, human.Quote(id),
				errs.ErrNotFound, err)
		}
		return last, err
	case !end.Deleted:
		if m,
			derr := end.Decode(); k == st.inner.Engine.Kinds().Memories && derr == nil && !m.ExpiresAt.IsZero() &&
			!st.inner.Engine.Env().Clock().Before(m.ExpiresAt) {
			return last, nil
		}
		if _, nerr := st.newest(ctx, k, id); since != nil && errors.Is(nerr, errs.ErrNotFound) {
			return last,
				fmt.Errorf("%s %s was deleted, and the lost part of the history may have had later versions; the "+
					"last version that is kept is %d: memctl revert restores this version: %w", k.Noun,
					human.Quote(id), end.LSN, err)
		}
		return last,
			fmt.Errorf("%w: %s %s is not deleted; memctl history lists its versions, memctl revert restores one of them",
				errs.ErrInvalid, k.Noun, human.Quote(id))
	case last.LSN == 0:
		why := error(errs.ErrTruncated)
		if end.HistoryGone {
			why = errs.ErrHistoryGone
		}
		return last, fmt.Errorf("the history has only the deletion of the document, and none of its versions: %w: %w",
			&errs.NoVersionError{Kind: k.Noun, ID: id, Version: end.Previous}, errors.Join(why, err))
	case end.Previous != last.LSN && end.Previous != 0 && (end.Previous&7 == 0 || err != nil):
		// else its number was made up, by a rebuild of the index from the files
		lost := error(&errs.NoVersionError{Kind: k.Noun, ID: id, Version: end.Previous, Oldest: first, Newest: last.LSN})
		return last, fmt.Errorf("the version that was deleted is not kept: %w: memctl revert restores a version that "+
			"is kept",
			errors.Join(lost, err))
	}
	return last, nil
}

// earlier returns a version of a document, and a condition for the write that restores the version. The condition holds
// while the document is unchanged.
func (st *Store) earlier(ctx context.Context, k *engine.Kind, id string, version uint64) (Version, PutOption, error) {
	v, err := st.versionAt(ctx, k, id, version)
	if err == nil && v.Deleted {
		err = fmt.Errorf("%w: version %d of %s %s is a deletion and has no content → choose another version, or delete "+
			"the %s", errs.ErrInvalid, version, k.Noun, human.Quote(id), k.Noun)
	}
	if err != nil {
		return v, nil, err
	}
	at, err := st.newest(ctx, k, id)
	if errors.Is(err, errs.ErrNotFound) {
		return v, IfAbsent(), nil
	}
	return v, IfVersion(at), err
}

// newest returns the newest version of a document. If the document is deleted or has expired, the error is
// errs.ErrNotFound.
func (st *Store) newest(ctx context.Context, k *engine.Kind, id string) (uint64, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return 0, err
	}
	defer st.inner.Engine.EndUse()
	v, err := st.inner.Engine.Find(ctx, k, id, false)
	if err == nil && v.Expired(st.inner.Engine.Env().Clock()) {
		err = errs.ErrNotFound
	}
	return v.LSN, err
}
