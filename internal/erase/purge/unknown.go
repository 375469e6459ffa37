package purge

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/erase/trace"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
)

// Unknown returns the ids of which the store has no trace. It changes nothing.
func (p *Purger) Unknown(ctx context.Context, k *engine.Kind, ids []string) ([]string, error) {
	left := map[string]bool{}
	for _, id := range ids {
		if err := p.checkExists(ctx, k, id); errors.Is(err, errs.ErrNotFound) {
			left[id] = true
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		} // an unreadable document exists
	}
	for _, known := range []func(context.Context, *engine.Kind, map[string]bool) error{p.knownAside, p.knownBackups,
		p.knownPast} {
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

// knownAside removes an id from ids if a file of its document is in the folder of the kind k, in quarantine, or among
// the parked files.
func (p *Purger) knownAside(_ context.Context, k *engine.Kind, ids map[string]bool) error {
	for _, id := range sorted(ids) {
		_, err := p.engine.Env().FS.Stat(k.Path(k.FileName(id)))
		stands := err == nil
		if !stands {
			if stands, err = trace.HasAside(p.engine.Env().FS, p.engine.Env().Dir, trace.Of(k.Kind, []string{id})); err != nil {
				return err
			}
		}
		if stands {
			delete(ids, id)
		}
	}
	return nil
}

// knownBackups removes an id from ids if a backup of the index has a line of its document.
func (p *Purger) knownBackups(_ context.Context, k *engine.Kind, ids map[string]bool) error {
	if k == p.engine.Kinds().Scopes {
		return nil
	}
	backups, err := index.Backups(p.engine.Env().FS, p.engine.Env().Dir)
	if err != nil {
		return err
	}
	for _, b := range backups {
		set, err := index.OpenBackup(p.engine.Env().FS, p.engine.Env().Dir, b, uuid.UUID(p.engine.Log().UUID()).String())
		if err != nil {
			continue // purging it reports the error
		}
		for _, id := range sorted(ids) {
			if _, ok, err := set.Get(nil, k.Section, id); ok && err == nil {
				delete(ids, id)
			}
		}
		if err := set.Release(); err != nil {
			return err
		}
	}
	return nil
}

// knownPast removes an id from ids if the log or the archive has a version or a deletion of its document.
func (p *Purger) knownPast(ctx context.Context, k *engine.Kind, ids map[string]bool) error {
	oldest, err := p.engine.Log().Past().First(p.engine.Log().Durable())
	if err != nil {
		return err
	}
	for range p.engine.Log().Past().EntriesOf(ctx, wal.Mark{LSN: oldest}, p.engine.Log().Durable(), func(key []byte) bool {
		if len(key) > 1 && key[0] == record.Kept {
			key = key[1:]
		}
		known := len(key) > 0 && key[0] == k.Letter && ids[string(key[1:])]
		if known {
			delete(ids, string(key[1:]))
		}
		return known
	}) {
		if ctx.Err() != nil || len(ids) == 0 {
			break
		}
	}
	return ctx.Err()
}

func sorted(set map[string]bool) []string {
	return slices.Sorted(maps.Keys(set))
}
