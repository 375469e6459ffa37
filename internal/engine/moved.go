package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/migrate"
)

// CheckMoved returns an error for a folder whose store was moved away, or that is the unfinished copy of a store that
// is being moved. If a migration has switched but not finished, CheckMoved finishes it.
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

// moved is the knowledge about a move of the store in a read-only handle, which holds no lock that prevents moving the
// store.
type moved struct {
	looked atomic.Int64 // time at which the folder was last checked, in ns
	where  atomic.Pointer[errs.MovedError]
}

// MovedLook is the maximum time for which such a handle may still read the old folder after a move.
const MovedLook = time.Second

// MovedSince returns a *errs.MovedError if the store was moved since it was opened.
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
