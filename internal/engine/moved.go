package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/migrate"
)

// CheckMoved refuses a folder whose store has gone elsewhere, or is still to come.
// The end of a migration whose switch has happened is made up for.
func (eng *Engine) CheckMoved() error {
	if eng.unfinished {
		return nil
	}
	done, err := migrate.Residence(eng.env.FS, eng.env.Dir)
	if err == nil && done != nil && !eng.env.ReadOnly {
		err = done()
	}
	return eng.env.Explain(err)
}

// moved is what a read-only handle, which keeps nobody from moving the store, knows
// of that.
type moved struct {
	looked atomic.Int64 // when, in ns
	where  atomic.Pointer[errs.MovedError]
}

// MovedLook is how long such a handle may go on reading what the old place holds.
const MovedLook = time.Second

// MovedSince is a *MovedError when the store has gone elsewhere since it was opened.
func (eng *Engine) MovedSince() error {
	if !eng.env.ReadOnly || eng.unfinished {
		return nil
	}
	m := &eng.moved
	if gone := m.where.Load(); gone != nil {
		return gone
	}
	now := eng.env.Clock().UnixNano()
	last := m.looked.Load()
	if d := now - last; d >= 0 && d < int64(MovedLook) || !m.looked.CompareAndSwap(last, now) {
		return nil
	}
	var gone *errs.MovedError
	if err := eng.CheckMoved(); errors.As(err, &gone) {
		m.where.Store(gone)
		return gone
	}
	return nil
}
