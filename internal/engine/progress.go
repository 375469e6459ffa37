package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal"
)

// lasting tracks the operations that no caller can end through its ctx: operations that PutAsync began, and writes to
// the log for several callers at once. Close waits for these operations as for all others, but not forever, because
// they do not end if the log cannot be made durable.
type lasting struct {
	Context context.Context
	giveUp  context.CancelFunc

	mu      sync.Mutex
	written int            // number of operations that have succeeded
	left    map[string]int // number of abandoned operations, by kind of operation
}

// Init makes l ready for use.
func (l *lasting) Init() {
	l.Context, l.giveUp = context.WithCancel(context.Background())
	l.left = map[string]int{}
}

// Ended records that an operation has ended with the error err. It counts the operations that have succeeded. It
// also counts, by name, the operations that were abandoned; operation is the name.
func (l *lasting) Ended(operation string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.written++
	}
	if l.Context.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errs.ErrOutcomeUnknown)) {
		l.left[operation]++
	}
}

// headway shows whether the log still works: its value changes whenever the log accepts entries or is flushed.
type headway struct {
	written          int
	durable, flushed wal.LSN
}

func (eng *Engine) headway() headway {
	eng.progress.mu.Lock()
	defer eng.progress.mu.Unlock()
	return headway{eng.progress.written, eng.log.Durable(), eng.log.Flushed()}
}

// Finish waits for all operations to end. If headway has not changed for the time wait, Finish abandons the operations
// that lasting tracks, and returns an error that names them. A slow disk is no reason to abandon them, as long as
// headway changes.
func (eng *Engine) Finish(wait time.Duration) error {
	l := &eng.progress
	defer l.giveUp()
	if eng.env.System.Inline {
		eng.operations.Wait()
		return nil
	}
	done := make(chan struct{})
	go func() {
		eng.operations.Wait()
		close(done)
	}()
	tick := time.NewTicker(max(wait, time.Millisecond)) // a caller may have no time left
	defer tick.Stop()
	for was, moves := eng.headway(), true; moves; {
		select {
		case <-done:
			return nil
		case <-tick.C:
			is := eng.headway()
			was, moves = is, is != was
		}
	}
	l.giveUp()
	<-done
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.left) == 0 {
		return nil
	}
	var list []string
	for _, what := range slices.Sorted(maps.Keys(l.left)) {
		list = append(list, fmt.Sprintf("%s: %d", what, l.left[what]))
	}
	return fmt.Errorf("%w: the log accepted no writes for %v; abandoned operations: %s", errs.ErrOutcomeUnknown, wait,
		strings.Join(list, ", "))
}

// BeginUse begins an operation on the store, and returns an error if the store is closed. Close waits for the operation
// until EndUse is called.
func (eng *Engine) BeginUse() error {
	eng.closing.RLock()
	defer eng.closing.RUnlock()
	if eng.closed.Load() {
		return errs.ErrClosed
	}
	eng.operations.Add(1)
	return nil
}

// EndUse ends an operation that BeginUse began.
func (eng *Engine) EndUse() { eng.operations.Done() }

// Writable returns an error if this handle cannot write to the store.
func (eng *Engine) Writable() error {
	if eng.linked != nil {
		return eng.linked
	}
	if eng.env.ReadOnly {
		if err := eng.env.Medium(); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrReadOnly, err)
		}
		return errs.ErrReadOnly
	}
	if err := eng.log.Folder().Replaced(); err != nil {
		return err
	}
	if d := eng.log.Damage(); d != nil {
		return fmt.Errorf("%w: %w: run memctl verify", errs.ErrReadOnly, d)
	}
	return nil
}
