package cli

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
	"github.com/varve-db/varve/cmd/memctl/internal/place"
	"github.com/varve-db/varve/cmd/memctl/internal/seal"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/writer"
)

// Access is the kind of access to the store that a command needs.
type Access int

const (
	Look   Access = iota // read only; changes nothing on disk
	Read                 // read; may adopt edits and recover the log, where the store can be written
	Write                // writes to an existing store
	Create               // creates the store if it does not exist
	Serve                // like Create, or like Read if the store cannot be written; for a server
	Attend               // like Write, for a command that runs until it is interrupted
)

// The environment variables that name the agent and the session for which a command writes.
const (
	AgentVariable   = "VARVE_AGENT"
	SessionVariable = "VARVE_SESSION"
)

// writer returns the description of this process as a writer, for Options.Writer.
func (a *App) writer() (*varve.Writer, error) {
	for _, name := range []string{AgentVariable, SessionVariable} {
		if n := len(a.Getenv(name)); n > writer.MostName {
			return nil, WithFix(fmt.Errorf("%s has %d bytes, the limit is %d: %w", name, n, writer.MostName,
				varve.ErrTooLarge), "give a shorter name")
		}
	}
	return &varve.Writer{Program: a.command, Agent: a.Getenv(AgentVariable), Session: a.Getenv(SessionVariable)}, nil
}

// open opens the store in the folder dir for the given kind of access. If modify is not nil, open calls modify
// with the options before it opens the store.
func (a *App) open(ctx context.Context, dir string, how Access, modify func(*varve.Options)) (*varve.Store, error) {
	o := varve.Options{
		ReadOnly: how == Look, MustExist: how != Create && how != Serve, LockWait: a.Wait, Clock: a.Clock, Listener: a.Heard,
		NoBackground: true, // Close flushes
	}
	if how != Look {
		var err error
		if o.Writer, err = a.writer(); err != nil && how != Read {
			return nil, err
		}
	}
	if modify != nil {
		modify(&o)
	}
	o.SealRemote = seal.Recipients
	if !o.NoBackground && o.Remote == nil {
		o.Remote = place.Open
	}
	if (how == Create || how == Serve) && !IsStore(dir) {
		if above, err := a.Outside(dir, "a store"); err != nil {
			return nil, WithFix(err, "give a path outside the store, or use that store: --store "+ShellQuote(above))
		}
	}
	st, err := varve.Open(ctx, dir, &o)
	if (how == Read || how == Serve && IsStore(dir)) && errors.Is(classified(err), varve.ErrPermission) {
		o.ReadOnly = true
		if ro, roErr := varve.Open(ctx, dir, &o); roErr == nil {
			if how == Serve {
				a.Note("the store is opened read-only: %v", err)
			}
			return ro, nil
		}
	}
	switch {
	case err != nil && how == Look && IsStore(dir) && lacksView(dir, err):
		err = &unready{err}
	case errors.Is(err, varve.ErrNoStore) && a.Named() == dir:
		err = fmt.Errorf("%w (%s names this path)", err, a.NamedBy())
	}
	return st, err
}

// unready means that the log or the index of a store is missing, as in a clone or a rescued copy. Opening the store for
// writing rebuilds the missing parts from the files. Opening it read-only must not write, and returns this error.
type unready struct{ err error }

func (e *unready) Error() string { return e.err.Error() }
func (e *unready) Unwrap() error { return e.err }

// IsUnready reports whether err means that opening the store for writing would rebuild missing parts.
func IsUnready(err error) bool { return errorAs[*unready](err) }

func lacksView(dir string, err error) bool {
	if errorAs[*varve.EmptiedError](err) {
		return false
	}
	if errors.Is(err, varve.ErrNoStore) || errors.Is(err, varve.ErrCorrupt) || errors.Is(err, varve.ErrTruncated) {
		return true
	}
	_, serr := os.Stat(filepath.Join(dir, "memory_index.json"))
	return errors.Is(serr, fs.ErrNotExist) && Classify(err).Code == CodeInternal
}

// classified wraps an error of the operating system that reports a missing permission, so that the error also matches
// varve.ErrPermission. It returns any other error unchanged.
func classified(err error) error {
	if err != nil && Classify(err).Code == CodePermission {
		return fmt.Errorf("%w: %w", varve.ErrPermission, err)
	}
	return err
}

func (a *App) NamedBy() string {
	if a.Store != "" {
		return "--store"
	}
	return StoreVariable
}

// OnStore returns a function for the field RunE of a command. The returned function opens the store, calls f, and
// closes the store; see With.
func (a *App) OnStore(how Access, f func(ctx context.Context, st *varve.Store,
	args []string) error) func(*cobra.Command, []string) error {
	return a.Do(func(cmd *cobra.Command, args []string) error {
		return a.With(cmd.Context(), how, func(st *varve.Store) error { return f(cmd.Context(), st, args) })
	})
}

// lastLocks is the maximum time for which closing a store waits for locks and writes files. The limit applies to every
// store after a signal. It always applies to a store that is open until the user interrupts the command, as in memctl
// mcp.
const lastLocks = 1 * time.Second

// With opens the store, calls f with the store, and closes it. Closing writes the changes to the files.
func (a *App) With(ctx context.Context, how Access, f func(st *varve.Store) error) error {
	dir, err := a.Locate()
	if err != nil {
		return err
	}
	return a.WithIn(ctx, dir, how, nil, f)
}

func (a *App) WithIn(ctx context.Context, dir string, how Access, more func(*varve.Options),
	f func(st *varve.Store) error) error {
	st, err := a.open(ctx, dir, how, more)
	if err != nil {
		return err
	}
	if d := st.Admin().OpenReport().Damage; d != nil && how != Look {
		a.Note("the log is damaged and the store is read-only until it is repaired: %v", d)
	}
	settle := a.begin(how, st)
	err = f(st)
	done := err == nil
	closed := st.Close
	// The command must end soon: the client may be gone, the machine may be shutting down, or a signal asked for the
	// end.
	if how == Serve || how == Attend || ctx.Err() != nil {
		closed = func() error { return st.CloseWithin(lastLocks) }
	}
	defer a.tellEvicted()
	cerr := closed()
	switch {
	case cerr == nil, how == Serve && errors.Is(cerr, varve.ErrReplaced) && !errorAs[*varve.UnfiledError](cerr):
		// The calls have reported it.
	case done && how == Read && !errors.Is(cerr, varve.ErrReplaced): // the answer is complete
		a.warnUnwritten(how, done, cerr)
	case (done || vfs.CanWait(err) && !errors.Is(err, context.DeadlineExceeded)) && vfs.CanWait(cerr):
		a.warnUnwritten(how, done, cerr)
	default:
		err = errors.Join(err, fmt.Errorf("closing the store %s: %w", dir, cerr))
	}
	return settle(done, err)
}

// Reopen opens the store that is now at the path of a served store whose folder was replaced. If the path has no
// store, the error matches varve.ErrNoStore: Reopen never creates a store.
func (a *App) Reopen(ctx context.Context, dir string, more func(*varve.Options)) (*varve.Store, error) {
	if !IsStore(dir) {
		return nil, fmt.Errorf("%s: %w", dir, varve.ErrNoStore)
	}
	return a.open(ctx, dir, Serve, func(o *varve.Options) {
		more(o)
		o.MustExist = true
	})
}

// CloseServed closes a served store whose folder was replaced, and prints an error of closing. It does not print that
// the folder was replaced, because that was reported before.
func (a *App) CloseServed(st *varve.Store) {
	if err := st.CloseWithin(lastLocks); err != nil &&
		(!errors.Is(err, varve.ErrReplaced) || errorAs[*varve.UnfiledError](err)) {
		a.Note("closing the store: %v", err)
	}
}

// warnUnwritten reports that the changes in the log are not in the files yet. err is the reason, such as a full disk,
// a lock, a lack of time or a missing permission. done is true if the command itself has succeeded; if it has not,
// warnUnwritten prints nothing. The exit status stays success, because a script that repeated the command would write
// the same data again.
func (a *App) warnUnwritten(how Access, done bool, err error) {
	f, when := Classify(err), "by the next command that is able to write them"
	f.Fix = onceCommitted(f.Fix)
	if errorAs[*varve.InflatedError](err) {
		when = "when you ask for it"
	}
	if vfs.IsDiskFull(err) {
		when = "when there is space"
	} else if errors.Is(err, context.DeadlineExceeded) && f.Fix == "" {
		f.Fix = "memctl flush writes them now"
	}
	switch {
	case !done: // the command's own failure reports it
	case a.committed() > 0:
		_ = a.Out.Flush()
		a.Warn("the change is committed and safe in the log, do not repeat it; its files will be written %s: %s; %s",
			when, f.Message, f.Fix)
	case vfs.CanWait(err):
		a.Note("note: changes that are safe in the log will be written to the files %s: %s; %s", when, f.Message, f.Fix)
	default:
		if f.Fix == "" {
			f.Fix = "memctl flush tries again to write the files"
		}
		_ = a.Out.Flush()
		a.Warn("the answer is complete; changes that are safe in the log could not be written to the files: %s; %s",
			f.Message, f.Fix)
	}
}

// Heard prints events of the store. Any goroutine of the store may call it while the command writes its result.
func (a *App) Heard(e varve.Event) {
	switch e.Kind {
	case varve.EventEvicted:
		a.evicted.add(&e)
		return
	case varve.EventTornTail, varve.EventCorruption, varve.EventEdit, varve.EventAdopted, varve.EventDeleted,
		varve.EventRebuilt, varve.EventHealed, varve.EventDrift,
		varve.EventConfig, varve.EventSyncFailed, varve.EventSyncHealed, varve.EventDiskFull,
		varve.EventLowSpace, varve.EventSpaceBack, varve.EventEmbedFailed:
	case varve.EventLockWait:
		// One part of the command waits for another.
		if strings.HasPrefix(e.Note, fmt.Sprintf("process %d ", os.Getpid())) {
			return
		}
	case varve.EventRestored:
		if e.Note == "" { // another event reports what was wrong
			return
		}
	case varve.EventArchiveOld:
		if strings.HasSuffix(e.Note, "history_bytes") { // a store at its history limit removes some with each segment
			return
		}
	case varve.EventWatching:
		if e.Err == nil {
			return
		}
	default:
		return
	}
	// Found when the store was opened; Path is the folder.
	if e.Kind == varve.EventDrift && e.Note == "" && e.Err == nil {
		a.remark("note: files and index do not agree: %s missing from %s/ or unknown to the index; memctl verify "+
			"names them", Count(e.Count, "file is", "files are"), e.Path)
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
