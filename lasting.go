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

func (st *Store) headway() headway {
	st.lasting.mu.Lock()
	defer st.lasting.mu.Unlock()
	return headway{st.lasting.written, st.log.Durable(), st.log.Flushed()}
}

// finish waits for all operations, and says what of the lasting ones was given up, after
// some time in which nothing moved: a slow disk is waited for.
func (st *Store) finish(wait time.Duration) error {
	l := &st.lasting
	defer l.giveUp()
	if st.env.System.Inline {
		st.operations.Wait()
		return nil
	}
	done := make(chan struct{})
	go func() {
		st.operations.Wait()
		close(done)
	}()
	tick := time.NewTicker(wait)
	defer tick.Stop()
	for was, moves := st.headway(), true; moves; {
		select {
		case <-done:
			return nil
		case <-tick.C:
			is := st.headway()
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
