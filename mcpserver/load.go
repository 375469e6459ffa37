package mcpserver

import (
	"context"
	"fmt"

	"github.com/varve-db/varve"
)

// loading is what one call loads to change it. All that it changes is in memory until it is
// committed, several times over, and calls run beside each other: so a call changes maxChange
// at most, and one that changes much waits for another.
type loading struct {
	s     *server
	ctx   context.Context
	holds bool // one of maxLoads
	bytes int
}

const (
	maxLoads  = 1
	muchBytes = 256 << 10
	maxChange = 20 << 20 // a memory has 16 MiB at most
)

func (s *server) loading(ctx context.Context) *loading { return &loading{s: s, ctx: ctx} }

// get is tx.Get, of what is going to be changed.
func (l *loading) get(tx *varve.Tx, id string) (m varve.Memory, err error) {
	if err := l.hold(); err != nil {
		return m, err
	}
	m, err = tx.Get(id)
	if l.bytes += size(&m); l.bytes > maxChange {
		err = fmt.Errorf("%w: the changed data exceeds the %d bytes that one call may change", varve.ErrBatchTooLarge,
			maxChange)
	}
	if l.bytes < muchBytes {
		l.done()
	}
	return m, err
}

// has reports whether there is a memory.
func (l *loading) has(tx *varve.Tx, id string) error {
	held := l.holds
	if err := l.hold(); err != nil {
		return err
	}
	_, err := tx.Get(id)
	if !held {
		l.done()
	}
	return err
}

func (l *loading) hold() error {
	if l.holds {
		return nil
	}
	err := l.s.loads.Acquire(l.ctx, 1)
	l.holds = err == nil
	return err
}

// done is for when all is committed, or is not going to be.
func (l *loading) done() {
	if l.holds {
		l.s.loads.Release(1)
		l.holds = false
	}
}

// size is about how many bytes of text a memory holds.
func size(m *varve.Memory) int {
	n := len(m.Content)
	for _, v := range m.Metadata {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []any:
			for _, v := range v {
				s, _ := v.(string)
				n += len(s) + 16
			}
		}
	}
	return n
}
