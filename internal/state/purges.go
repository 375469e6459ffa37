package state

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// PurgeKey is the key of the log entries that name purged documents and redacted versions.
const PurgeKey = "p"

// purges has the purges that are named by log entries after the index, in the form of rows of the file wal/purges.
type purges struct {
	mu      sync.Mutex
	list    []purgefile.Row
	changes uint64 // number that increases with each change of list
}

func (ps *purges) begin() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.list, ps.changes = nil, ps.changes+1
}

func (ps *purges) apply(e *wal.Entry, line []byte) error {
	rows, err := purgefile.Parse(line)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.list, ps.changes = append(ps.list, dated(rows, e)...), ps.changes+1
	return nil
}

// drop drops the rows whose entries are below pos, because a new index covers these entries. These rows are in
// wal/purges then.
func (ps *purges) drop(pos uint64) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	before := len(ps.list)
	ps.list = slices.DeleteFunc(ps.list, func(r purgefile.Row) bool { return r.Since < pos })
	if len(ps.list) != before {
		ps.changes++
	}
}

// dated adds to each row the position, the time and the writer of its log entry. The UUID of the store stays empty.
func dated(rows []purgefile.Row, e *wal.Entry) []purgefile.Row {
	for i := range rows {
		rows[i].Since, rows[i].At, rows[i].By = e.LSN, e.Reading.UnixMicro(), e.Writer
	}
	return rows
}

// Purges returns the purges named by log entries that the current index does not cover, in the order of the
// log and without the UUID of the store. The returned number increases with each change of these rows.
func (s *State) Purges() ([]purgefile.Row, uint64) {
	s.purges.mu.Lock()
	defer s.purges.mu.Unlock()
	return slices.Clone(s.purges.list), s.purges.changes
}

// PurgeChanges returns a number that increases whenever the rows of Purges change.
func (s *State) PurgeChanges() uint64 {
	s.purges.mu.Lock()
	defer s.purges.mu.Unlock()
	return s.purges.changes
}

// PurgesIn returns the purges that a log entry of the key PurgeKey names, with the UUID of their store.
func PurgesIn(e *wal.Entry, store [16]byte) ([]purgefile.Row, error) {
	view, err := Check(e)
	if err != nil {
		return nil, err
	}
	rows, err := purgefile.Parse(view.Line)
	if err != nil {
		return nil, invalid(e, err)
	}
	rows = dated(rows, e)
	for i := range rows {
		rows[i].Store = store
	}
	return rows, nil
}

// PastPurges yields the purges that the log and the archive record in [from, to). It skips entries that are damaged or
// missing, and returns the first such error after it has yielded everything else.
func PastPurges(ctx context.Context, past *past.Log, from, to wal.LSN, yield func(r purgefile.Row)) error {
	first, err := past.First(to)
	if err != nil {
		return err
	}
	first = max(first, from)
	if first >= to {
		return ctx.Err()
	}
	is := func(key []byte) bool { return string(key) == PurgeKey }
	var damage error
	for e, err := range past.EntriesOf(ctx, wal.Mark{LSN: first}, to, is) {
		if ctx.Err() != nil {
			break
		}
		var rows []purgefile.Row
		if err == nil {
			rows, err = PurgesIn(&e, past.Geometry.UUID)
		}
		if err != nil && damage == nil {
			damage = err
		}
		for _, r := range rows {
			yield(r)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return damage
}
