package varve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/wal"
)

// lasting are the operations that no caller's ctx ends: what PutAsync began, and
// what goes into the log for several callers at once. Close waits for them as for all
// others, but not for ever: a log that cannot be made durable takes nothing.
type lasting struct {
	ctx    context.Context
	giveUp context.CancelFunc

	mu      sync.Mutex
	written int            // how many have ended well
	left    map[string]int // how many were given up, of what
}

func (l *lasting) init() {
	l.ctx, l.giveUp = context.WithCancel(context.Background())
	l.left = map[string]int{}
}

// ended is told how one ended; whatever was given up is remembered.
func (l *lasting) ended(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.written++
	}
	if l.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errs.ErrOutcomeUnknown)) {
		l.left[what]++
	}
}

// headway is what moves as long as the log takes something, or is made room in.
type headway struct {
	written          int
	durable, flushed wal.LSN
}

func (eng *engine) headway() headway {
	eng.lasting.mu.Lock()
	defer eng.lasting.mu.Unlock()
	return headway{eng.lasting.written, eng.log.Durable(), eng.log.Flushed()}
}

// finish waits for all operations, and says what of the lasting ones was given up, after
// some time in which nothing moved: a slow disk is waited for.
func (eng *engine) finish(wait time.Duration) error {
	l := &eng.lasting
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
	tick := time.NewTicker(wait)
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
	return fmt.Errorf("%w: the log took no writes for %v, these were given up: %s", errs.ErrOutcomeUnknown, wait, strings.Join(list, ", "))
}

// begun is called at the start of every operation; ended at its end.
func (eng *engine) begun() error {
	eng.closing.RLock()
	defer eng.closing.RUnlock()
	if eng.closed.Load() {
		return errs.ErrClosed
	}
	eng.operations.Add(1)
	return nil
}

func (eng *engine) ended() { eng.operations.Done() }

// writable says whether this handle may write at all.
func (eng *engine) writable() error {
	if eng.env.ReadOnly {
		return errs.ErrReadOnly
	}
	if d := eng.log.Damage(); d != nil {
		return fmt.Errorf("%w: %w: run memctl verify", errs.ErrReadOnly, d)
	}
	return nil
}
