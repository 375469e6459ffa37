package scopes

import (
	"context"
	"errors"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// Consolidation selects the parts of a scope of working memory that become long-term memories.
type Consolidation struct {
	Values []string               // patterns of keys, see working.Match: each matching value becomes a memory
	Notes  bool                   // the whole scratchpad becomes one memory
	Keep   bool                   // keep the scope, including the parts that became memories
	Memory func(*memstore.Memory) // may change each memory before it is written
}

// Consolidate turns the scope sc of working memory into long-term memories, and returns these memories. It calls write
// to make them in one commit. This commit also drops the scope unless o.Keep is true.
func (ws *Scopes) Consolidate(ctx context.Context, sc working.Scope, o Consolidation,
	write commit.Write) ([]memstore.Memory, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	for _, pattern := range o.Values {
		if _, err := working.Match(pattern, ""); err != nil {
			return nil, err
		}
	}
	s := ws.acquire(sc)
	defer ws.release(s)
	for {
		if !o.Keep {
			if err := s.copyForDrop(ctx); err != nil {
				return nil, err
			}
		}
		ops, at, err := s.consolidate(ctx, o)
		if err != nil || len(ops) == 0 {
			return nil, err
		}
		err = write(ctx, ops, commit.Reads{s.logKey(): at}, 0)
		var conflict *wal.ConflictError
		if errors.As(err, &conflict) && conflict.Key == s.logKey() {
			continue // the scope was changed: the change is to be consolidated too
		}
		if err != nil {
			return nil, err
		}
		var all []memstore.Memory
		for i := range ops {
			if m := ops[i].Memory; m != nil {
				all = append(all, *m.Clone())
			}
		}
		return all, nil
	}
}

// consolidate returns the operations that would turn the scope into memories, and the version of the scope
// from which they were computed.
func (s *scope) consolidate(ctx context.Context, o Consolidation) ([]commit.Op, wal.LSN, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := s.current(ctx)
	if err != nil || s.state.Empty() {
		return nil, 0, err
	}
	moment, _ := s.moment(false)
	_, res, err := s.state.Judge(moment, &working.Request{Scope: s.scope, Op: working.OpLoad{}})
	if err != nil {
		return nil, 0, err
	}
	now, err := working.NewSnapshotAsWritten(&res)
	if err != nil {
		return nil, 0, err
	}
	drafts, err := working.Drafts(s.scope, now, o.Notes, o.Values...)
	if err != nil {
		return nil, 0, err
	}
	var ops []commit.Op
	for _, d := range drafts {
		m := &memstore.Memory{Content: d.Content, Metadata: d.Metadata, Timestamp: d.Time}
		if o.Memory != nil {
			o.Memory(m)
		}
		ops = append(ops, commit.Op{ID: m.ID, Memory: m})
	}
	if o.Keep {
		return ops, at, nil
	}
	s.ahead, s.aheadOf = s.state.Clone(), s.lsn
	e, body, _, err := s.judge([]*asked{{r: &working.Request{Scope: s.scope, Op: working.OpDrop{}}}})
	s.ahead = nil
	if err != nil {
		return nil, 0, err
	}
	entry := s.entry(e, body, s.lsn, true)
	return append(ops, commit.Op{Work: &entry, WorkAt: at}), at, nil
}
