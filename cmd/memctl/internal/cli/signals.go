package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Durations of ending a command. A signal ends a command within 2 s, or within the time of FinishWithin: it cancels the
// context, which most waits of a command observe. A wait that cannot, because it is in a system call that cannot be
// interrupted or waits for a lock at the end, is abandoned after patience. That is as safe as a kill, which a store
// survives: everything acknowledged is in the log.
const (
	patience = 1500 * time.Millisecond
	// lastWords is the time that a command gets after a signal to write output that is ready, and to print that it was
	// interrupted.
	lastWords = 300 * time.Millisecond
)

// Listen returns a context that the first SIGINT or SIGTERM cancels; the second one ends the
// process at once.
func Listen(e Environment) (context.Context, Environment) {
	ctx, end := context.WithCancel(context.Background())
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	var deaf atomic.Int32
	go func() {
		for s := range heard {
			if s == os.Interrupt && deaf.Load() > 0 {
				continue
			}
			signal.Stop(heard)
			end()
			return
		}
	}()
	e.exit = os.Exit
	e.IgnoreInterrupt = func() func() {
		deaf.Add(1)
		return func() { deaf.Add(-1) }
	}
	return ctx, e
}

// FinishWithin gives the command the additional time d after a signal, before guard ends the process. A server uses
// this time to finish the requests in progress.
func (a *App) FinishWithin(d time.Duration) { a.more.Store(int64(d)) }

// guard ends the process if the command still runs at the end of the time patience (plus the time of FinishWithin)
// after the end of ctx. A signal ends ctx.
func (a *App) guard(ctx context.Context) {
	if a.exit == nil {
		return
	}
	context.AfterFunc(ctx, func() {
		time.Sleep(patience)
		within := patience
		if more := time.Duration(a.more.Load()); more > 0 && !a.ending.Load() {
			time.Sleep(more)
			within += more
		}
		if !a.ending.CompareAndSwap(false, true) { // the command is about to end by itself
			time.Sleep(lastWords)
			a.lastWord()
			a.exit(CodeInterrupted)
		}
		done := make(chan int, 1)
		go func() {
			err := fmt.Errorf("%w: the command did not end within %v and was aborted", context.Canceled, within)
			a.Fail(WithFix(a.afterCommits(err, false),
				"everything that was stored before is safe in the files or in the log; memctl status shows "+
					"the state of the store"))
			done <- a.finish()
		}()
		select {
		case code := <-done:
			a.exit(code)
		case <-time.After(lastWords): // stdout is not read
			a.exit(CodeInterrupted)
		}
	})
}

// lastWord prints that the command was interrupted, if no such message was printed yet. The message is missing if the
// command has done its work and waits for a reader of its output.
func (a *App) lastWord() {
	said := make(chan struct{})
	go func() {
		defer close(said)
		a.messages.Lock()
		told := slices.ContainsFunc(a.failures, func(f *Failure) bool { return f.Code == CodeInterrupted })
		done := len(a.failures) == 0
		a.messages.Unlock()
		if !told {
			a.Fail(a.afterCommits(context.Canceled, done))
		}
	}()
	select {
	case <-said:
	case <-time.After(lastWords): // stderr is not read either
	}
}

// mayFinish returns at once if the command may end the process itself. If guard is already ending the process,
// mayFinish never returns.
func (a *App) mayFinish() {
	if !a.ending.CompareAndSwap(false, true) {
		select {} // guard ends the process
	}
}
