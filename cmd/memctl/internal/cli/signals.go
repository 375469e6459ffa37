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

// A signal ends a command within 2 s. It ends the context, which most of what a command
// waits for looks at; what cannot look, because it is in a call of the system that nothing
// interrupts or waits for a lock on the way out, is left behind when patience is over. That
// is as safe as a kill, which a store survives: what was acknowledged is in the log.
const (
	patience  = 1500 * time.Millisecond
	lastWords = 300 * time.Millisecond // to write what is ready and that it was interrupted
)

// Listen gives the context that the first SIGINT or SIGTERM ends; the second ends the
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

// guard ends the process when a signal has not ended the command in time.
func (a *App) guard(ctx context.Context) {
	if a.exit == nil {
		return
	}
	context.AfterFunc(ctx, func() {
		time.Sleep(patience)
		if !a.ending.CompareAndSwap(false, true) { // it is about to end by itself
			time.Sleep(lastWords)
			a.lastWord()
			a.exit(CodeInterrupted)
		}
		done := make(chan int, 1)
		go func() {
			err := fmt.Errorf("%w: the command did not end within %v and was aborted", context.Canceled, patience)
			a.Fail(WithFix(a.afterCommits(err, false),
				"what was stored before is safe in the files or in the log; memctl status shows the state of the store"))
			done <- a.finish()
		}()
		select {
		case code := <-done:
			a.exit(code)
		case <-time.After(lastWords): // nobody reads stdout
			a.exit(CodeInterrupted)
		}
	})
}

// lastWord says that the command was interrupted, where it has not said so: it had done its work,
// and no reader takes its output.
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
	case <-time.After(lastWords): // no reader takes stderr either
	}
}

// mayFinish reports whether the command still ends by itself. Where guard was faster it does
// not return.
func (a *App) mayFinish() {
	if !a.ending.CompareAndSwap(false, true) {
		select {} // guard ends the process
	}
}
