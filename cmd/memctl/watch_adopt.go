package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// busyAgain is the interval at which watch --adopt tries again to open a locked store.
const busyAgain = 2 * time.Second

// adoption is an edit that was adopted or set aside: one line of the JSON output of watch --adopt.
type adoption struct {
	Time    time.Time `json:"time"`
	Did     string    `json:"did"` // "adopted", "deleted" or "set aside"
	Path    string    `json:"path"`
	ID      string    `json:"id,omitempty"`
	Version uint64    `json:"version,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// checkAdopt returns an error if a flag that selects changes is set, because watch --adopt shows edits instead of
// changes.
func checkAdopt(cmd *cobra.Command) error {
	for _, name := range []string{"since", "kind", "assembly", "session"} {
		if cmd.Flags().Changed(name) {
			return cli.Usagef(cmd.CommandPath(), "--adopt and --%s cannot be combined", name)
		}
	}
	return nil
}

// adopt runs watch --adopt: it adopts edits until the user interrupts it or an error ends it. An interruption is the
// normal end, with exit status 0. limit is the number of printed lines after which it ends; 0 means no limit.
func adopt(a *cli.App, cmd *cobra.Command, limit int) error {
	dir, err := a.Locate()
	if err != nil {
		return err
	}
	if a.Document != nil {
		a.Document.Lines = true
	}
	ctx, told := cmd.Context(), false
	for {
		err := adoptIn(ctx, a, dir, limit)
		switch {
		case ctx.Err() != nil && onlyInterrupted(err):
			return nil
		case errors.Is(err, varve.ErrReplaced):
			if dir, err = a.ReopenedAs(err, "watches"); err != nil {
				return err
			}
			continue
		case !errors.Is(err, varve.ErrLocked):
			return err
		}
		if !told {
			told = true
			a.Note("the store is busy; memctl tries again until the store can be opened: %v", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(busyAgain):
		}
	}
}

// onlyInterrupted reports whether watching ended only because the user interrupted it. A lock that another process
// holds does not count as another error, because the changes are safe in the log.
func onlyInterrupted(err error) bool {
	if err == nil {
		return true
	}
	code := cli.Classify(err).Code
	return code == cli.CodeInterrupted || code == cli.CodeLocked
}

// adoptIn opens the store in the folder dir, and adopts edits until ctx ends or limit lines were printed. A limit of 0
// means no limit.
func adoptIn(ctx context.Context, a *cli.App, dir string, limit int) error {
	heard := newHeard(a.Clock)
	ctx, replaced := context.WithCancelCause(ctx)
	defer replaced(nil)
	options := func(o *varve.Options) {
		others := o.Listener
		o.NoBackground, o.WatchFiles = false, true
		o.Listener = func(e varve.Event) {
			if e.Kind == varve.EventReplaced {
				replaced(e.Err)
			}
			if !heard.take(e) {
				others(e)
			}
		}
	}
	err := a.WithIn(ctx, dir, cli.Attend, options, func(st *varve.Store) error {
		if damage := st.Admin().OpenReport().Damage; damage != nil {
			return fmt.Errorf("edits cannot be adopted: the log is damaged and the store is read-only until it is repaired: %w",
				damage)
		}
		if other := st.Admin().Stats().Watcher; other != 0 && other != os.Getpid() {
			a.Note("process %d watches the files already and adopts the edits; this process takes over when that one ends",
				other)
		}
		for n := 0; limit == 0 || n < limit; n++ {
			ad, ok := heard.next(ctx, func() { a.Note("watching the files of %s", cli.Printable(dir)) })
			if !ok {
				return nil
			}
			if err := showAdoption(a, &ad); cli.BrokenPipe(err) { // the reader has closed the pipe
				a.Out.Discard()
				a.Document.Discard()
				return nil
			} else if err != nil {
				return fmt.Errorf("writing a line: %w", err)
			}
		}
		return nil
	})
	if errors.Is(err, varve.ErrReadOnly) || errors.Is(err, varve.ErrPermission) {
		err = fmt.Errorf("edits cannot be adopted without writing to the store: %w", err)
	}
	return err
}

func showAdoption(a *cli.App, ad *adoption) error {
	switch {
	case a.Document != nil:
		if err := a.Document.Line(ad); err != nil {
			return err
		}
	case a.Quiet:
		return nil
	default:
		parts := []string{ad.Time.Format(time.RFC3339), ad.Did, cli.Printable(ad.Path), cli.PrintableID(ad.ID)}
		if ad.Reason != "" {
			parts = append(parts, cli.Printable(ad.Reason))
		}
		fmt.Fprintln(a.Out, strings.Join(parts, "\t"))
	}
	return a.Out.Flush()
}

// heard is a queue of edits. The goroutines of the store add events about edits and must not wait; another goroutine
// takes the edits from the queue and prints them.
type heard struct {
	clock func() time.Time
	mu    sync.Mutex
	list  []adoption
	leads bool          // this process has begun to watch the files, and the user was not told yet
	more  chan struct{} // a channel of size 1 that signals new lines
}

func newHeard(clock func() time.Time) *heard {
	return &heard{clock: clock, more: make(chan struct{}, 1)}
}

// take stores an event. It returns false if the event is not about an edit.
func (h *heard) take(e varve.Event) bool {
	ad := adoption{Time: h.clock().UTC(), Path: e.Path, ID: e.ID, Version: e.LSN}
	switch {
	case e.Kind == varve.EventAdopted:
		ad.Did = "adopted"
	case e.Kind == varve.EventDeleted:
		ad.Did, ad.Reason = "deleted", e.Note
	case e.Kind == varve.EventEdit:
		ad.Did, ad.Reason = "set aside", e.Note
		if e.Err != nil {
			ad.Reason = e.Err.Error()
		}
	case e.Kind == varve.EventWatching && e.Err == nil:
	default:
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ad.Did == "" {
		h.leads = true
	} else {
		h.list = append(h.list, ad)
	}
	select {
	case h.more <- struct{}{}:
	default:
	}
	return true
}

// next waits for the next edit and returns it. The bool is false if ctx has ended and no edit is left. next calls begun
// when this process has begun to watch the files.
func (h *heard) next(ctx context.Context, begun func()) (adoption, bool) {
	for {
		h.mu.Lock()
		leads := h.leads
		h.leads = false
		var first *adoption
		if len(h.list) > 0 {
			first, h.list = &h.list[0], h.list[1:]
		}
		h.mu.Unlock()
		if leads {
			begun()
		}
		if first != nil {
			return *first, true
		}
		select {
		case <-ctx.Done():
			return adoption{}, false
		case <-h.more:
		}
	}
}
