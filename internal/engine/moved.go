package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/migrate"
)

// CheckMoved returns an error if the store was moved from this folder to another one, or is still being moved to this
// folder. If a migration has switched to the new folder but has not finished, CheckMoved finishes the migration.
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

// moved records for a read-only handle whether the store was moved to another folder. A read-only handle holds no lock
// that prevents such a move.
type moved struct {
	looked atomic.Int64 // time of the last check of the folder, in ns
	where  atomic.Pointer[errs.MovedError]
}

// MovedLook is the maximum time for which a read-only handle may still read the contents of the old folder after a
// move.
const MovedLook = time.Second

// MovedSince returns a *errs.MovedError if the store was moved since it was opened. It examines the folder only for a
// read-only handle, and at most once per MovedLook. Any other handle holds a lock that prevents the move.
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
