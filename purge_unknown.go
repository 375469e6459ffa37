package varve

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/trace"
)

// Unknown says of which of some memories a store has nothing: none is there, neither
// log nor archive has a version that can be read, nor a backup of the index a line,
// and nothing that was set aside is about it. It changes nothing. Purge looks further
// still: this is to find an id that was mistyped before the others are gone.
func (st *Store) Unknown(ctx context.Context, ids ...string) ([]string, error) {
	return st.unknown(ctx, st.engine.Kinds.Memories, ids)
}

// Unknown says of which of some assemblies a store has nothing; see Store.Unknown.
func (as Assemblies) Unknown(ctx context.Context, ids ...string) ([]string, error) {
	return as.st.unknown(ctx, as.st.engine.Kinds.Assemblies, ids)
}

func (st *Store) unknown(ctx context.Context, k *engine.Kind, ids []string) ([]string, error) {
	if err := st.engine.Begun(); err != nil {
		return nil, err
	}
	defer st.engine.Ended()
	left := map[string]bool{}
	for _, id := range ids {
		if err := st.there(ctx, k, id); errors.Is(err, errs.ErrNotFound) {
			left[id] = true
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		} // what cannot be read is there
	}
	for _, known := range []func(context.Context, *engine.Kind, map[string]bool) error{st.knownAside, st.knownBackups, st.knownPast} {
		if len(left) == 0 {
			break
		}
		if err := known(ctx, k, left); err != nil {
			return nil, err
		}
	}
	var unknown []string
	for _, id := range ids {
		if left[id] && !slices.Contains(unknown, id) {
			unknown = append(unknown, id)
		}
	}
	return unknown, nil
}

// knownAside strikes out those that have a file somewhere.
func (st *Store) knownAside(_ context.Context, k *engine.Kind, left map[string]bool) error {
	for _, id := range sorted(left) {
		_, err := st.engine.Env.FS.Stat(k.Path(docfile.FileName(id)))
		stands := err == nil
		if !stands {
			if stands, err = trace.HasAside(st.engine.Env.FS, st.engine.Env.Dir, trace.Of(k.Letter, []string{id})); err != nil {
				return err
			}
		}
		if stands {
			delete(left, id)
		}
	}
	return nil
}

// knownBackups strikes out those that a backup of the index has.
func (st *Store) knownBackups(_ context.Context, k *engine.Kind, left map[string]bool) error {
	if k == st.engine.Kinds.Scopes {
		return nil
	}
	backups, err := index.Backups(st.engine.Env.FS, st.engine.Env.Dir)
	if err != nil {
		return err
	}
	for _, b := range backups {
		set, err := index.OpenBackup(st.engine.Env.FS, st.engine.Env.Dir, b, uuid.UUID(st.engine.Log.UUID()).String())
		if err != nil {
			continue // who purges it is told
		}
		for _, id := range sorted(left) {
			if _, ok, err := set.Get(nil, k.Section, id); ok && err == nil {
				delete(left, id)
			}
		}
		if err := set.Release(); err != nil {
			return err
		}
	}
	return nil
}

// knownPast strikes out those that have a version, or their deletion.
func (st *Store) knownPast(ctx context.Context, k *engine.Kind, left map[string]bool) error {
	oldest, err := st.engine.Log.Past().First(st.engine.Log.Durable())
	if err != nil {
		return err
	}
	for e, err := range st.engine.Log.History(ctx, oldest) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && len(e.Key) > 0 && e.Key[0] == k.Letter {
			delete(left, e.Key[1:])
		}
		if len(left) == 0 {
			break
		}
	}
	return nil
}

func sorted(set map[string]bool) []string {
	return slices.Sorted(maps.Keys(set))
}
