package purge

import (
	"context"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/erase/trace"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// First returns a position of the log before which the store had no data of the documents with these ids. A copy of
// the store from before this position has no such data either. First returns 0 if the position is unknown: for scopes
// of working memory, if log and archive no longer have the entry with which a document began, or if a part of them
// cannot be read.
func (p *Purger) First(ctx context.Context, k *engine.Kind, ids []string) (wal.LSN, error) {
	traces := trace.Of(k.Kind, ids)
	traces.Log = p.engine.Log().Past().Geometry
	if _, err := p.learn(ctx, k, ids, traces); err != nil {
		return 0, err
	}
	return p.first(ctx, k, ids, traces)
}

// first does the work of First. traces is the set of the documents, with their contents. With it, first also finds the
// entries of assemblies and of working memory that have data of the documents.
func (p *Purger) first(ctx context.Context, k *engine.Kind, ids []string, traces *trace.Set) (wal.LSN, error) {
	log := p.engine.Log()
	if k == p.engine.Kinds().Scopes { // their entries do not tell whether a scope existed before
		return 0, nil
	}
	own, began := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		own[k.Key(id)] = true
	}
	first := log.Durable()
	oldest, err := log.Past().First(first)
	if err != nil {
		return 0, ctx.Err()
	}
	for e, err := range log.Past().EntriesOf(ctx, wal.Mark{LSN: oldest}, first, p.mayHave(own)) {
		if err != nil {
			return 0, ctx.Err()
		}
		if !traces.Entry(e.LSN, e.Key, e.Value) {
			continue
		}
		first = min(first, e.LSN)
		key, kept := e.Key, e.Key[0] == record.Kept
		if kept {
			key = key[1:]
		}
		if !own[key] || began[key] {
			continue
		}
		if _, view, err := state.LineIn(&e); kept || e.Delete || err != nil || view.Previous != 0 {
			return 0, nil // it existed before
		}
		began[key] = true
	}
	for _, id := range ids {
		if !began[k.Key(id)] && p.checkExists(ctx, k, id) == nil {
			return 0, nil
		}
	}
	return first, ctx.Err()
}

// mayHave returns a function that reports whether a log entry may have data of the documents with the given keys.
// These are the entries of the documents themselves, and all entries of assemblies and of working memory, because
// these can contain data of other documents.
func (p *Purger) mayHave(keys map[string]bool) func(key []byte) bool {
	assemblies := p.engine.Kinds().Assemblies.Letter
	return func(key []byte) bool {
		if len(key) > 1 && key[0] == record.Kept {
			key = key[1:]
		}
		return len(key) > 1 && (key[0] == record.Working || key[0] == assemblies || keys[string(key)])
	}
}
