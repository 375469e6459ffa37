package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

// access says what a command is going to do with the store.
type access int

const (
	look   access = iota // changes nothing at all
	read                 // may adopt edits and recover, where that is possible
	write                // an existing store
	create               // makes one where there is none
	serve                // as create, and as read where it cannot be written
)

// open opens a folder's store.
func (a *app) open(ctx context.Context, dir string, how access, more func(*varve.Options)) (*varve.Store, error) {
	o := varve.Options{
		ReadOnly: how == look, MustExist: how != create && how != serve, LockWait: a.wait, Clock: a.clock, Listener: a.heard,
		NoBackground: true, // Close flushes
	}
	if more != nil {
		more(&o)
	}
	st, err := varve.Open(ctx, dir, &o)
	if (how == read || how == serve && isStore(dir)) && errors.Is(classified(err), varve.ErrPermission) {
		o.ReadOnly = true
		if ro, roErr := varve.Open(ctx, dir, &o); roErr == nil {
			if how == serve {
				a.note("the store can be read only: %v", err)
			}
			return ro, nil
		}
	}
	switch {
	case err != nil && isStore(dir) && lacksView(dir, err):
		err = &unready{err}
	case errors.Is(err, varve.ErrNoStore) && a.named() == dir:
		err = fmt.Errorf("%w (it was named by %s)", err, a.namedBy())
	}
	return st, err
}

// unready is a store whose log or index is missing: a clone, a rescued copy.
// Opening it for writing makes them from the files; looking may not.
type unready struct{ err error }

func (e *unready) Error() string { return e.err.Error() }
func (e *unready) Unwrap() error { return e.err }

// isUnready says whether opening the store for writing would make what it lacks.
func isUnready(err error) bool { return as[*unready](err) }

func lacksView(dir string, err error) bool {
	if errors.Is(err, varve.ErrNoStore) || errors.Is(err, varve.ErrCorrupt) || errors.Is(err, varve.ErrTruncated) {
		return true
	}
	_, serr := os.Stat(filepath.Join(dir, "memory_index.json"))
	return errors.Is(serr, fs.ErrNotExist) && classify(err).code == codeInternal
}

// classified gives errors of the system the sentinel that they stand for.
func classified(err error) error {
	if err != nil && classify(err).code == codePermission {
		return fmt.Errorf("%w: %w", varve.ErrPermission, err)
	}
	return err
}

func (a *app) namedBy() string {
	if a.store != "" {
		return "--store"
	}
	return storeVariable
}

// onStore makes a command of what it does with the store.
func (a *app) onStore(how access, f func(ctx context.Context, st *varve.Store, args []string) error) func(*cobra.Command, []string) error {
	return a.do(func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), how, func(st *varve.Store) error { return f(cmd.Context(), st, args) })
	})
}

// lastLocks is how long a store that was served waits for locks at its end.
const lastLocks = 1 * time.Second

// with runs f on the store and closes it: what was written is then flushed.
func (a *app) with(ctx context.Context, how access, f func(st *varve.Store) error) error {
	dir, err := a.locate()
	if err != nil {
		return err
	}
	return a.withIn(ctx, dir, how, nil, f)
}

func (a *app) withIn(ctx context.Context, dir string, how access, more func(*varve.Options), f func(st *varve.Store) error) error {
	st, err := a.open(ctx, dir, how, more)
	if err != nil {
		return err
	}
	if d := st.OpenReport().Damage; d != nil && how != look {
		a.note("the log is damaged and the store is read-only until it is repaired: %v", d)
	}
	err = f(st)
	closed := st.Close
	if how == serve { // whose client may be gone
		closed = func() error { return st.CloseWithin(lastLocks) }
	}
	if cerr := closed(); cerr != nil {
		cerr = fmt.Errorf("closing the store %s: %w", dir, cerr)
		if err == nil && errors.Is(cerr, varve.ErrDiskFull) {
			cerr = fmt.Errorf("it is done, and safe in the log; its files follow when there is space: %w", cerr)
		}
		err = errors.Join(err, cerr)
	}
	return err
}

// heard tells what the store did beside what it was asked for. Any goroutine of the store
// may call it, while the command writes its result.
func (a *app) heard(e varve.Event) {
	switch e.Kind {
	case varve.EventTornTail, varve.EventCorruption, varve.EventEdit, varve.EventAdopted, varve.EventDeleted, varve.EventRebuilt, varve.EventHealed, varve.EventDrift,
		varve.EventConfig, varve.EventLockWait, varve.EventSyncFailed, varve.EventSyncHealed, varve.EventDiskFull,
		varve.EventLowSpace, varve.EventSpaceBack, varve.EventEmbedFailed:
	case varve.EventRestored:
		if e.Note == "" { // what was wrong is told by another
			return
		}
	case varve.EventWatching:
		if e.Err == nil {
			return
		}
	default:
		return
	}
	s := string(e.Kind)
	for _, part := range []string{e.Path, e.Note} {
		if part != "" && !strings.HasPrefix(s, part) { // config.json names itself
			s += ": " + part
		}
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	a.remark("note: %s", s)
}

const defaultWait = 30 * time.Second
