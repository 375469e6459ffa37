package mcpserver

import (
	"context"
	"fmt"

	"github.com/varve-db/varve"
)

// loading counts the bytes of the memories that one call loads in order to change them. All changes of a call are in
// memory until they are committed, in several copies, and calls run at the same time. So a call may change at most
// maxChange bytes, and calls that change much run one at a time.
type loading struct {
	s     *server
	ctx   context.Context
	holds bool // the call holds one of the maxLoads permits
	bytes int
}

const (
	maxLoads  = 1
	muchBytes = 256 << 10
	maxChange = 20 << 20 // bytes that one call may change; a memory has at most 16 MiB
)

func (s *server) loading(ctx context.Context) *loading { return &loading{s: s, ctx: ctx} }

// get returns a memory that the call is going to change, as tx.Get does. It counts the size of the memory, and returns
// an error if the call has loaded more than maxChange bytes.
func (l *loading) get(tx interface {
	Get(id string) (varve.Memory, error)
}, id string) (m varve.Memory, err error) {
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

// has returns the error that tx.Get returns for the id: nil if the memory exists. It reads the memory only for this
// check, and does not count its size.
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

// done releases the permit that the call holds, if it holds one. It is called after the call was committed or has
// failed.
func (l *loading) done() {
	if l.holds {
		l.s.loads.Release(1)
		l.holds = false
	}
}

// size returns the approximate number of bytes of text in a memory.
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
