package varve

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/trace"
	"github.com/varve-db/varve/working"
)

// PurgeWorking drops scopes of working memory, with their checkpoints, and takes every
// trace of them out of the store's folder, as Purge does it with memories: their
// files, what log and archive have of them, what was set aside. Memories that were made of
// them (Consolidate) are not theirs, and stay. A scope that is not there now is looked
// for all the same: ErrNotFound if it was nowhere.
func (st *Store) PurgeWorking(ctx context.Context, scopes ...working.Scope) (*PurgeReport, error) {
	return st.purge(ctx, st.engine.Kinds.Scopes, scopeKeysOf(scopes))
}

// UnknownWorking says of which of some scopes a store has nothing; see Unknown.
func (st *Store) UnknownWorking(ctx context.Context, scopes ...working.Scope) ([]working.Scope, error) {
	keys, err := st.unknown(ctx, st.engine.Kinds.Scopes, scopeKeysOf(scopes))
	if err != nil {
		return nil, err
	}
	var unknown []working.Scope
	for _, key := range keys {
		s, err := working.ParseScope(key)
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, s)
	}
	return unknown, nil
}

func scopeKeysOf(scopes []working.Scope) []string {
	keys := make([]string, len(scopes))
	for i, s := range scopes {
		keys[i] = s.Key()
	}
	return keys
}

// there says whether something is there now: ErrNotFound when it is not.
func (st *Store) there(ctx context.Context, k *engine.Kind, id string) error {
	if k != st.engine.Kinds.Scopes {
		_, err := st.engine.Find(ctx, k, id, false)
		return err
	}
	of, err := working.ParseScope(id)
	if err != nil {
		return err
	}
	res, err := st.working.Do(ctx, &working.Request{Scope: of, Op: working.OpCount{}})
	if errors.Is(err, errs.ErrCorrupt) {
		return nil
	}
	if err == nil && res.Counts.Created.IsZero() {
		return fmt.Errorf("scope %s: %w", errs.Quote(id), errs.ErrNotFound)
	}
	return err
}

func (st *Store) dropScope(ctx context.Context, key string) error {
	of, err := working.ParseScope(key)
	if err != nil {
		return err
	}
	_, err = st.working.Do(ctx, &working.Request{Scope: of, Op: working.OpDrop{}})
	return err
}

// learnScope tells traces what a scope says now.
func (st *Store) learnScope(ctx context.Context, key string, traces *trace.Set) error {
	of, err := working.ParseScope(key)
	if err != nil {
		return err
	}
	res, err := st.working.Do(ctx, &working.Request{Scope: of, Op: working.OpLoad{}})
	if errors.Is(err, errs.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := 0; i < min(len(res.Items), learnMost); i++ {
		traces.Learn(string(res.Items[i].Value))
	}
	for i := 0; i < min(len(res.Notes), learnMost); i++ {
		traces.Learn(res.Notes[i].Text)
	}
	return nil
}
