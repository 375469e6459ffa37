package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve"
)

// A command that has made a write durable may still fail: its files cannot be written, its output
// is full, it is interrupted, or a later one of several writes is refused. A caller that mistakes
// such a failure for "not stored" stores the same again. So every failure of a command is handled
// here (WithIn, the end of the output and the end by a signal return a committedError), and
// Classify makes sure that no failure after a commit says that nothing was written, or advises to
// repeat the command.

// committedError is a failure of a command after at least one of its commits was durable.
type committedError struct {
	commits int64
	done    bool // the main work of the command is done; only a later step failed
	err     error
}

func (e *committedError) Error() string {
	switch {
	case e.done && errors.Is(e.err, varve.ErrReplaced):
		return "the change was committed to the previous store at this path; check before you repeat it; " + e.err.Error()
	case e.done:
		return "the change is committed and durable, do not repeat it; " + e.err.Error()
	}
	return fmt.Sprintf("%v; what the command wrote before (%s) is committed and durable", e.err,
		Count(int(e.commits), "commit", "commits"))
}

func (e *committedError) Unwrap() error { return e.err }

// Committed reports whether a command failed although its main work is durable.
func Committed(err error) bool {
	var after *committedError
	return errors.As(err, &after) && after.done
}

// Resumable adds a remedy to the error of a command that failed after at least one of its commits, and before its main
// work was done: to run the command again. rest is the text with which the remedy says what the repeated command does.
// Resumable returns any other error unchanged.
func Resumable(err error, rest string) error {
	var after *committedError
	if errors.As(err, &after) && !after.done {
		return &fixed{err: err, fix: again + ": " + rest}
	}
	return err
}

// begin starts to count the commits of a store that was opened for writing as commits of the command. The caller calls
// the returned function when the store is closed. That function ends the counting, and returns err as a committedError
// if the store has made a commit. done means that the main work of the command is done.
//
// After begin, a write to a pipe without a reader is an error instead of a signal: the signal would end the process
// before it can print what is durable. The returned function restores the signal, unless the command has made a commit
// or was wrapped by DoWhole.
func (a *App) begin(how Access, st *varve.Store) func(done bool, err error) error {
	if how != Write && how != Create {
		return func(_ bool, err error) error { return err }
	}
	a.writing.Store(st)
	restore := leaveBrokenPipes()
	return func(done bool, err error) error {
		n := st.Admin().Commits()
		a.writing.Store(nil)
		if a.commits.Add(n); a.commits.Load() == 0 && a.pipes == nil {
			restore()
		}
		if err == nil || n == 0 {
			return err
		}
		return &committedError{commits: n, done: done, err: err}
	}
}

// committed returns the number of commits of the command so far.
func (a *App) committed() int64 {
	n := a.commits.Load()
	if st := a.writing.Load(); st != nil {
		n += st.Admin().Commits()
	}
	return n
}

// afterCommits returns err as a committedError if the command has made a commit, otherwise err itself. done means that
// the main work of the command is done.
func (a *App) afterCommits(err error, done bool) error {
	if n := a.committed(); n > 0 && err != nil && !errors.As(err, new(*committedError)) {
		return &committedError{commits: n, done: done, err: err}
	}
	return err
}

// adjustForCommits records the number of commits of a failed command that are durable. It changes the remedy of
// the failure so that the remedy does not contradict these commits.
func (f *Failure) adjustForCommits(e *committedError) {
	f.Committed = e.commits
	f.Fix = onceCommitted(f.Fix)
	switch {
	case !e.done && f.Fix == "":
		f.Fix = "check what is stored before you repeat the command: memctl list"
	case e.done && errors.Is(e.err, varve.ErrReplaced):
		f.Fix = "check what is stored before you repeat the command: memctl list"
	case e.done && f.Fix == "":
		f.Fix = "memctl flush writes the changes that are not in files yet"
	case e.done:
		f.Fix += "; memctl flush then writes what is not in the files yet"
	}
}

// Ends of remedies that are wrong once a write of the command is durable.
const (
	again          = "run the command again"
	thenAgain      = ", then " + again
	againOpens     = again + ": it opens the store that is there now"
	andRetry       = " and retry"
	nothingWritten = "; nothing was written"
)

// onceCommitted returns the remedy fix without the parts that are wrong after a commit.
func onceCommitted(fix string) string {
	for _, end := range []string{nothingWritten, thenAgain, andRetry, againOpens, again} {
		fix = strings.TrimSuffix(fix, end)
	}
	return fix
}
