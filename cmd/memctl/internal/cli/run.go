package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/varve-db/varve"
)

// Environment is the program's environment other than its streams.
type Environment struct {
	Getenv func(string) string
	Getwd  func() (string, error) // returns the current folder
	Clock  func() time.Time

	exit func(code int) // ends the process; nil: the caller handles signals
	// Ignores interrupts while another program uses the terminal; nil as for exit.
	IgnoreInterrupt func() (listen func())
}

func System() Environment {
	return Environment{Getenv: os.Getenv, Getwd: os.Getwd, Clock: time.Now}
}

// App is one run of the program.
type App struct {
	Environment
	In       io.Reader
	Out      *Output
	ErrOut   *Output
	Document *Document // nil without --json

	Store string
	json  bool
	form  string // the value of --output
	paint string // the value of --color
	Quiet bool
	Wait  time.Duration

	passedOver sync.Once // set once stores of other users were reported: they are reported once

	evicted evictions
	commits atomic.Int64                // number of commits of the stores that the command has closed
	writing atomic.Pointer[varve.Store] // the store that is open for writing
	started bool                        // the command line was valid
	command string                      // name of the command, including the program's name
	// undoes the change by DoWhole of how broken pipes are handled; nil: DoWhole was not called
	pipes    func()
	messages sync.Mutex
	failures []*Failure // guarded by messages
	ending   atomic.Bool
	more     atomic.Int64 // nanoseconds, see FinishWithin
}

// Run runs the program with the arguments args, and returns its exit code. commands returns the root command.
func Run(ctx context.Context, commands func(*App) *cobra.Command, args []string, in io.Reader, out, errOut io.Writer,
	env Environment) int {
	a := &App{Environment: env, In: in, Out: newOutput(out, env), ErrOut: unbuffered(errOut, env)}
	root := a.Program(commands)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(a.Out)
	root.SetErr(a.ErrOut)
	if asksJSON(args) {
		a.Document = newDocument(a.Out.Data(JSON)) // even if the command line is invalid
		root.SetVersionTemplate(`{{""}}`)
	}
	a.guard(ctx)
	defer func() {
		if a.pipes != nil { // after the last output
			a.pipes()
		}
	}()
	cmd, err := root.ExecuteContextC(ctx)
	if asked, _ := root.Flags().GetBool("version"); asked && err == nil && !a.started && a.Document != nil {
		a.started = true
		a.Document.All(ThisBuild())
	}
	if err != nil && !a.started && !errorAs[*usageError](err) {
		err = Usage(cmd.CommandPath(), err)
	}
	// If the context has ended, some calls return another error than the context's.
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	if err != nil {
		a.Fail(err)
	}
	a.mayFinish()
	return a.finish()
}

// Fail records the failure err for the exit code, and does not end the command. Without --json, Fail also prints the
// error at once.
func (a *App) Fail(err error) {
	f := Classify(err)
	if a.committed() > 0 {
		f.Fix = onceCommitted(f.Fix)
	}
	a.messages.Lock()
	defer a.messages.Unlock()
	a.failures = append(a.failures, f)
	if a.Document != nil {
		return
	}
	if f.Code != CodeInterrupted || a.Out.Screen { // after an interruption the reader of a pipe must get no more
		_ = a.Out.Flush() // keep the order of results and messages
	}
	a.ErrOut.InColour(Red, "memctl:")
	fmt.Fprintf(a.ErrOut, " %s\n", indented(f.Message))
	if f.Fix != "" {
		fmt.Fprintf(a.ErrOut, "  → %s\n", escape(f.Fix, ""))
	}
}

// finish ends the output and returns the exit code.
func (a *App) finish() int {
	a.messages.Lock()
	failures := slices.Clone(a.failures)
	a.messages.Unlock()
	worst := &Failure{Code: CodeOK}
	for _, f := range failures {
		if graver(worst.Code, f.Code) != worst.Code {
			worst = f
		}
	}
	if a.Document != nil && (worst.Code != CodeOK || a.started) {
		if worst.Code != CodeOK {
			a.Document.Member("error", worst)
		}
		if len(failures) > 1 {
			a.Document.Member("errors", failures)
		}
		if err := a.Document.close(); err != nil {
			return a.cannotWrite(worst.Code, err)
		}
	}
	_ = a.ErrOut.end()
	if err := a.Out.end(); err != nil {
		return a.cannotWrite(worst.Code, err)
	}
	return worst.Code
}

// cannotWrite reports that stdout is full or closed, and returns the exit code.
func (a *App) cannotWrite(code int, err error) int {
	f := Classify(a.afterCommits(fmt.Errorf("writing the result: %w", err), code == CodeOK))
	fmt.Fprintf(a.ErrOut, "memctl: %s\n", indented(f.Message))
	return graver(code, f.Code)
}

// Note prints a remark after the output written so far. Only the goroutine that writes to Out may
// call it; others call remark.
func (a *App) Note(format string, args ...any) {
	if a.Quiet {
		return
	}
	_ = a.Out.Flush()
	a.remark(format, args...)
}

// remark is like Note, but may be called by any goroutine: it does not flush Out, since two concurrent flushes
// could write a line twice.
func (a *App) remark(format string, args ...any) {
	if a.Quiet {
		return
	}
	a.Warn(format, args...)
}

// Warn writes a message to stderr, with --quiet too. Any goroutine may call it.
func (a *App) Warn(format string, args ...any) {
	a.messages.Lock()
	defer a.messages.Unlock()
	fmt.Fprintf(a.ErrOut, "memctl: %s\n", indented(fmt.Sprintf(format, args...)))
}

// Say prints a confirmation of what the command has done.
func (a *App) Say(format string, args ...any) {
	if !a.Quiet && a.Document == nil {
		fmt.Fprintf(a.Out, format+"\n", args...)
	}
}

// Do wraps the function f of a command. Before it calls f, it records that the command line was valid: errors of f are
// about the work, not about the usage.
func (a *App) Do(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started, a.command = true, cmd.CommandPath()
		return f(cmd, args)
	}
}

// DoWhole is like Do, for a command that must not end in the middle of its work, or that must close an open store at
// its end. While such a command runs, a write to a pipe without a reader is an error instead of a signal that ends the
// process.
func (a *App) DoWhole(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return a.Do(func(cmd *cobra.Command, args []string) error {
		a.pipes = leaveBrokenPipes()
		return f(cmd, args)
	})
}

const (
	Red   = "\x1b[31m"
	Green = "\x1b[32m"
	Bold  = "\x1b[1m"
	Dim   = "\x1b[2m"
)

// Terminal reports whether a stream is a terminal, and returns its file descriptor.
func Terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// Tell records, for the exit code, a failure that the output has already reported.
func (a *App) Tell(f *Failure) {
	a.messages.Lock()
	defer a.messages.Unlock()
	a.failures = append(a.failures, f)
}
