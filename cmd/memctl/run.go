package main

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
)

// environment is what the program knows of the machine besides its streams.
type environment struct {
	get   func(string) string
	dir   func() (string, error) // the current folder
	clock func() time.Time

	exit            func(code int)         // nil: a signal that comes is somebody else's concern
	ignoreInterrupt func() (listen func()) // while a program has the terminal; nil likewise
}

func system() environment {
	return environment{get: os.Getenv, dir: os.Getwd, clock: time.Now}
}

// app is one run of the program.
type app struct {
	environment
	in       io.Reader
	out      *output
	errOut   *output
	document *document // nil without --json

	store string
	json  bool
	quiet bool
	wait  time.Duration

	started  bool // the command line was understood
	messages sync.Mutex
	failures []*failure // behind messages
	ending   atomic.Bool
}

// runProgram runs the program whose commands are root's; it returns the exit code.
func runProgram(ctx context.Context, commands func(*app) *cobra.Command, args []string, in io.Reader, out, errOut io.Writer, env environment) int {
	a := &app{environment: env, in: in, out: newOutput(out, env), errOut: unbuffered(errOut, env)}
	root := a.program(commands)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)
	if end := slices.Index(args, "--"); slices.Contains(args[:max(end, 0)], "--json") || end < 0 && slices.Contains(args, "--json") {
		a.document = newDocument(a.out.data(jsonly)) // also for a command line that cannot be parsed
		root.SetVersionTemplate(`{{""}}`)
	}
	a.guard(ctx)
	cmd, err := root.ExecuteContextC(ctx)
	if asked, _ := root.Flags().GetBool("version"); asked && err == nil && !a.started && a.document != nil {
		a.started = true
		a.document.all(thisBuild())
	}
	if err != nil && !a.started && !as[*usageError](err) {
		err = usage(cmd.CommandPath(), err)
	}
	// Some calls end with another error than the context's when it is over.
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	if err != nil {
		a.fail(err)
	}
	a.mayFinish()
	return a.finish()
}

// fail notes an error without ending the command; in text it is told at once.
func (a *app) fail(err error) {
	f := classify(err)
	a.messages.Lock()
	defer a.messages.Unlock()
	a.failures = append(a.failures, f)
	if a.document != nil {
		return
	}
	_ = a.out.Flush() // in the order in which it happened
	a.errOut.inColour(red, "memctl:")
	fmt.Fprintf(a.errOut, " %s\n", indented(f.Message))
	if f.Fix != "" {
		fmt.Fprintf(a.errOut, "  → %s\n", escape(f.Fix, ""))
	}
}

// finish ends the output and gives the exit code.
func (a *app) finish() int {
	a.messages.Lock()
	failures := slices.Clone(a.failures)
	a.messages.Unlock()
	worst := &failure{code: codeOK}
	for _, f := range failures {
		if graver(worst.code, f.code) != worst.code {
			worst = f
		}
	}
	if a.document != nil && (worst.code != codeOK || a.started) {
		if worst.code != codeOK {
			a.document.member("error", worst)
		}
		if len(failures) > 1 {
			a.document.member("errors", failures)
		}
		if err := a.document.close(); err != nil {
			return a.cannotWrite(worst.code, err)
		}
	}
	_ = a.errOut.end()
	if err := a.out.end(); err != nil {
		return a.cannotWrite(worst.code, err)
	}
	return worst.code
}

// cannotWrite: stdout is full or gone.
func (a *app) cannotWrite(code int, err error) int {
	f := classify(fmt.Errorf("writing the result: %w", err))
	fmt.Fprintf(a.errOut, "memctl: %s\n", indented(f.Message))
	return graver(code, f.code)
}

// note tells something on the side, behind what was written before. For the goroutine
// that writes to out; the others remark.
func (a *app) note(format string, args ...any) {
	if a.quiet {
		return
	}
	_ = a.out.Flush()
	a.remark(format, args...)
}

// remark is note for any goroutine: it leaves out alone. Flushed by two at once, that
// writes a line twice.
func (a *app) remark(format string, args ...any) {
	if a.quiet {
		return
	}
	a.messages.Lock()
	defer a.messages.Unlock()
	fmt.Fprintf(a.errOut, "memctl: %s\n", indented(fmt.Sprintf(format, args...)))
}

// say confirms what was done.
func (a *app) say(format string, args ...any) {
	if !a.quiet && a.document == nil {
		fmt.Fprintf(a.out, format+"\n", args...)
	}
}

// do wraps what a command does: from here on errors are about the work.
func (a *app) do(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		return f(cmd, args)
	}
}

const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	bold  = "\x1b[1m"
)

// terminal says whether a stream is one, and gives its descriptor.
func terminal(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// tell notes a failure that the output has told already.
func (a *app) tell(f *failure) {
	a.messages.Lock()
	defer a.messages.Unlock()
	a.failures = append(a.failures, f)
}
