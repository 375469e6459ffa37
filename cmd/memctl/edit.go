package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
)

func editCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "edit ID",
		Short: "Change a memory in an editor",
		Long: `Open the memory's document in $VISUAL or $EDITOR and store the saved text, unless another
process has changed the memory meanwhile. A text that is refused, or that came too late, is
kept in a file that the message names.`,
		Example: "  memctl edit notes\n  EDITOR='code --wait' memctl edit notes",
		Args:    cli.Exactly(1, "the id of a memory"),
		RunE:    a.Do(func(cmd *cobra.Command, args []string) error { return editMemory(cmd.Context(), a, args[0]) }),
	}
}

func editMemory(ctx context.Context, a *cli.App, id string) error {
	dir, err := a.Locate()
	if err != nil {
		return err
	}
	var (
		doc     []byte
		version uint64
		limits  memstore.Limits
	)
	// The store is closed while the editor is open, which may be for hours.
	err = a.WithIn(ctx, dir, cli.Write, nil, func(st *varve.Store) error {
		var m varve.Memory
		err := a.MemoryToChange(ctx, st, id, func(id string) (err error) {
			m, err = st.Get(ctx, id)
			return err
		})
		if err != nil {
			return err
		}
		id = m.ID
		version, limits = m.Version, cli.LimitsOf(st.Admin().Config())
		doc, err = m.Encode(cli.NoLimits())
		return err
	})
	if err != nil {
		return err
	}
	temp, err := vfs.MkdirTemp("", "memctl-edit-")
	if err != nil {
		return fmt.Errorf("creating a folder for the text to edit: %w", err)
	}
	file := filepath.Join(temp, jsondoc.FileName(id))
	write := func(w io.Writer) error { _, err := w.Write(doc); return err }
	if err := vfs.ReplaceGiven(file, 0o600, write); err != nil {
		return fmt.Errorf("writing the text to edit: %w", err)
	}
	m, err := edited(ctx, a, id, file, doc, limits)
	if err == nil && m != nil {
		err = saveEdited(ctx, a, dir, m, version)
	}
	if err != nil && !cli.Committed(err) {
		if _, serr := os.Stat(file); serr != nil { // the editor has removed the file
			_ = os.RemoveAll(temp)
			return cli.WithFix(fmt.Errorf("%w; nothing was stored, and the edited file is gone", err),
				"edit the current version: memctl edit "+cli.ShellQuote(id))
		}
		return cli.WithFix(fmt.Errorf("%w; the text is kept in %s", err, file),
			"copy what you want to keep into the current version: memctl edit "+cli.ShellQuote(id))
	}
	if err := os.RemoveAll(temp); err != nil {
		a.Note("the edited text could not be removed: %v", err)
	}
	if err != nil {
		return err
	}
	if m == nil {
		a.Say("%s was not changed", cli.PrintableID(id))
		a.Document.Begin("memories") // an empty list: nothing was stored
	}
	return nil
}

// saveEdited stores the edited memory m. version is the version that the user edited: if the memory has changed since,
// saveEdited returns an error and stores nothing.
func saveEdited(ctx context.Context, a *cli.App, dir string, m *varve.Memory, version uint64) error {
	more, err := a.Embedding(nil)
	if err != nil {
		return err
	}
	return a.WithIn(ctx, dir, cli.Write, more, func(st *varve.Store) error {
		stored, err := st.Put(ctx, *m, varve.IfVersion(version))
		if err == nil {
			tellPut(ctx, a, st, &stored, "changed")
		}
		return err
	})
}

// edited runs the editor until the file contains a valid memory, or the user stops. The result is nil if nothing was
// changed.
func edited(ctx context.Context, a *cli.App, id, file string, before []byte,
	limits memstore.Limits) (*varve.Memory, error) {
	for {
		if err := runEditor(ctx, a, file); err != nil {
			return nil, err
		}
		after, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the edited text: %w", err)
		}
		if bytes.Equal(before, after) {
			return nil, nil
		}
		m, err := memstore.Decode(after, memstore.DecodeOptions{Limits: limits, ID: id})
		if err == nil {
			return m, nil
		}
		if !editAgain(ctx, a, err) {
			return nil, fmt.Errorf("the edited text is refused: %w", err)
		}
	}
}

// editAgain prints the error cause and asks the user whether to start the editor again. If the input is not a
// terminal, it does not ask and returns false.
func editAgain(ctx context.Context, a *cli.App, cause error) bool {
	if _, ok := cli.Terminal(a.In); !ok {
		return false
	}
	fmt.Fprintf(a.ErrOut, "%s\nEdit again? [Y/n] ", cause)
	answer, err := cli.Await(ctx, func() ([]byte, error) {
		var answer string
		_, err := fmt.Fscanln(a.In, &answer)
		return []byte(answer), err
	})
	if err != nil && len(answer) == 0 {
		return err.Error() == "unexpected newline" // the user pressed Enter
	}
	return strings.HasPrefix(strings.ToLower(string(answer)), "y")
}

// goodbye is the time that a running editor gets to end itself when memctl must end.
const goodbye = 700 * time.Millisecond

// runEditor runs $VISUAL or $EDITOR, which may be a command with arguments. It ends the editor when
// ctx ends.
func runEditor(ctx context.Context, a *cli.App, file string) error {
	fallback := "vi"
	if runtime.GOOS == "windows" {
		fallback = "notepad"
	}
	editor := cmp.Or(a.Getenv("VISUAL"), a.Getenv("EDITOR"), fallback)
	line := editor + ` "$@"`
	if first, _, _ := strings.Cut(editor, " "); !strings.ContainsAny(editor, ";|&<>(){}`\n") && !strings.Contains(first,
		"=") {
		line = "exec " + line // the shell becomes the editor, so that a signal reaches it
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", line, editor, file)
	if runtime.GOOS == "windows" {
		words := strings.Fields(editor)
		cmd = exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out.Stream, a.ErrOut.Stream // the editor uses the terminal
	if a.Document != nil {
		cmd.Stdout = a.ErrOut.Stream // stdout is only for the document
	}
	if runtime.GOOS != "windows" {
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	}
	cmd.WaitDelay = goodbye
	// On a terminal Ctrl-C goes to the editor too, and is meant for it: a key of emacs, or the
	// cancellation of a line in ed.
	if _, ok := cli.Terminal(a.In); ok && a.IgnoreInterrupt != nil {
		defer a.IgnoreInterrupt()()
	}
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted while the editor %s ran; nothing was stored: %w", editor, ctx.Err())
		}
		if errors.As(err, &exit) {
			return fmt.Errorf("%w: the editor %s ended with %s; nothing was stored", varve.ErrInvalid, editor, exit.ProcessState)
		}
		return fmt.Errorf("running the editor %s ($VISUAL or $EDITOR names it): %w", editor, err)
	}
	return nil
}
