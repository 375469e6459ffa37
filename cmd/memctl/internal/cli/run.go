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

// Environment is what the program knows of the machine besides its streams.
type Environment struct {
	Getenv func(string) string
	Getwd  func() (string, error) // the current folder
	Clock  func() time.Time

	exit            func(code int)         // nil: a signal that comes is somebody else's concern
	IgnoreInterrupt func() (listen func()) // while a program has the terminal; nil likewise
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
	form  string // of --output
	paint string // of --color
	Quiet bool
	Wait  time.Duration

	passedOver sync.Once // stores of other users are named once

	evicted  evictions
	commits  atomic.Int64                // of stores that the command has closed
	writing  atomic.Pointer[varve.Store] // that it has open to write
	started  bool                        // the command line was understood
	command  string                      // with the name of the program
	pipes    func()                      // undoes what DoWhole has done; nil: nothing
	messages sync.Mutex
	failures []*Failure // behind messages
	ending   atomic.Bool
}

// Run runs the program whose commands are root's; it returns the exit code.
func Run(ctx context.Context, commands func(*App) *cobra.Command, args []string, in io.Reader, out, errOut io.Writer,
	env Environment) int {
	a := &App{Environment: env, In: in, Out: newOutput(out, env), ErrOut: unbuffered(errOut, env)}
	root := a.Program(commands)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(a.Out)
	root.SetErr(a.ErrOut)
	if asksJSON(args) {
		a.Document = newDocument(a.Out.Data(JSON)) // also for a command line that cannot be parsed
		root.SetVersionTemplate(`{{""}}`)
	}
	a.guard(ctx)
	defer func() {
		if a.pipes != nil { // not before the last output
			a.pipes()
		}
	}()
	cmd, err := root.ExecuteContextC(ctx)
	if asked, _ := root.Flags().GetBool("version"); asked && err == nil && !a.started && a.Document != nil {
		a.started = true
		a.Document.All(ThisBuild())
	}
	if err != nil && !a.started && !as[*usageError](err) {
		err = Usage(cmd.CommandPath(), err)
	}
	// Some calls end with another error than the context's when it is over.
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	if err != nil {
		a.Fail(err)
	}
	a.mayFinish()
	return a.finish()
}

// Fail notes an error without ending the command; in text it is told at once.
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
	if f.Code != CodeInterrupted || a.Out.Screen { // no reader may take what a pipe still gets
		_ = a.Out.Flush() // in the order in which it happened
	}
	a.ErrOut.InColour(Red, "memctl:")
	fmt.Fprintf(a.ErrOut, " %s\n", indented(f.Message))
	if f.Fix != "" {
		fmt.Fprintf(a.ErrOut, "  → %s\n", escape(f.Fix, ""))
	}
}

// finish ends the output and gives the exit code.
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

// cannotWrite: stdout is full or gone.
func (a *App) cannotWrite(code int, err error) int {
	f := Classify(a.afterCommits(fmt.Errorf("writing the result: %w", err), code == CodeOK))
	fmt.Fprintf(a.ErrOut, "memctl: %s\n", indented(f.Message))
	return graver(code, f.Code)
}

// Note tells something on the side, behind what was written before. For the goroutine
// that writes to out; the others remark.
func (a *App) Note(format string, args ...any) {
	if a.Quiet {
		return
	}
	_ = a.Out.Flush()
	a.remark(format, args...)
}

// remark is note for any goroutine: it leaves out alone. Flushed by two at once, that
// writes a line twice.
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

// Say confirms what was done.
func (a *App) Say(format string, args ...any) {
	if !a.Quiet && a.Document == nil {
		fmt.Fprintf(a.Out, format+"\n", args...)
	}
}

// Do wraps what a command does: from here on errors are about the work.
func (a *App) Do(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started, a.command = true, cmd.CommandPath()
		return f(cmd, args)
	}
}

// DoWhole is Do for a command that must not end halfway, or has a store open that it should close: a
// write to a pipe without a reader is an error, and no signal ends the process.
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

// Terminal reports whether a stream is one, and gives its descriptor.
func Terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// Tell notes a failure that the output has told already.
func (a *App) Tell(f *Failure) {
	a.messages.Lock()
	defer a.messages.Unlock()
	a.failures = append(a.failures, f)
}
