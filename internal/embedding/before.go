package embedding

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Before is a function that finds preceding memories. For each of the given positions of memories in sessions, it
// returns the id of the memory before that position in the same session, or "" if there is no such memory. It skips
// the memories whose ids are in except.
type Before func(ctx context.Context, of []words.Place, except map[string]bool) ([]string, error)

// said has the text that is embedded for a memory. own is the part of the text that comes from the memory itself,
// and not from the memory before it in the session. As long as own is unchanged, the memory's vector stays valid.
type said struct{ own, text string }

// texts returns, for each of the memories, the text to embed. If the template t asks for the previous memory, the
// text also has the content of the previous memory in the same session. The previous memory may be stored, or may
// be written by ops.
func (em *Embedding) texts(ctx context.Context, t *template.Template, memories []*memstore.Memory,
	ops []commit.Op) (map[*memstore.Memory]string, error) {
	var before map[*memstore.Memory]string
	if t.Previous() && em.precedes != nil {
		var err error
		if before, err = em.previousContents(ctx, memories, ops); err != nil {
			return nil, err
		}
	}
	texts := make(map[*memstore.Memory]string, len(memories))
	for _, m := range memories {
		texts[m] = t.Text(m, before[m])
	}
	return texts, nil
}

// previousContents returns, for each of the memories that has a previous memory in the same session, the content
// of that previous memory. The previous memory may be stored, or may be written by ops.
func (em *Embedding) previousContents(ctx context.Context, memories []*memstore.Memory,
	ops []commit.Op) (map[*memstore.Memory]string, error) {
	var places []words.Place
	var placed []*memstore.Memory
	now := em.engine.Env().Clock()
	for _, m := range memories {
		if m.Session() != "" {
			places = append(places, words.Place{Session: m.Session(), Time: happened(m, now), ID: m.ID})
			placed = append(placed, m)
		}
	}
	if len(placed) == 0 {
		return nil, nil
	}
	near, replaced := together(ops, now)
	ids, err := em.precedes(ctx, places, replaced)
	if err != nil {
		return nil, err
	}
	stored := map[string]*memstore.Memory{}
	err = em.eachOf(ctx, slices.Compact(slices.Sorted(slices.Values(ids))),
		func(m *memstore.Memory, _ wal.LSN) { stored[m.ID] = m })
	before := map[*memstore.Memory]string{}
	for i, m := range placed {
		is := near[m]
		if s := stored[ids[i]]; s != nil && (is == nil || order(is, s, now) < 0) {
			is = s
		}
		if is != nil {
			before[m] = is.Content
		}
	}
	return before, err
}

// together finds, for each memory that ops write, the previous memory of the same session among the other memories
// that ops write. replaced has the ids of all memories that ops write or delete.
func together(ops []commit.Op, now time.Time) (near map[*memstore.Memory]*memstore.Memory, replaced map[string]bool) {
	near, replaced = map[*memstore.Memory]*memstore.Memory{}, map[string]bool{}
	sessions := map[string][]*memstore.Memory{}
	for i := range ops {
		o := &ops[i]
		if o.Group || o.Work != nil {
			continue
		}
		replaced[o.ID] = true
		if o.Memory != nil && o.Memory.Session() != "" {
			sessions[o.Memory.Session()] = append(sessions[o.Memory.Session()], o.Memory)
		}
	}
	for _, list := range sessions {
		slices.SortStableFunc(list, func(a, b *memstore.Memory) int { return order(a, b, now) })
		for i := 1; i < len(list); i++ {
			if list[i].ID == "" || list[i].ID != list[i-1].ID {
				near[list[i]] = list[i-1]
			}
		}
	}
	return near, replaced
}

// happened returns the timestamp of a memory in microseconds since 1970, or now for a memory that will get its
// timestamp when it is written.
func happened(m *memstore.Memory, now time.Time) int64 {
	if m.Timestamp.IsZero() {
		return now.UnixMicro()
	}
	return m.Timestamp.UnixMicro()
}

// order compares two memories of a session by their timestamps and then by their ids. It does not compare the ids if
// one of them is unknown because the store assigns it when the memory is written.
func order(a, b *memstore.Memory, now time.Time) int {
	c := cmp.Compare(happened(a, now), happened(b, now))
	if c == 0 && a.ID != "" && b.ID != "" {
		c = cmp.Compare(a.ID, b.ID)
	}
	return c
}
