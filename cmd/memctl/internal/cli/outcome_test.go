package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
)

// putting is a program whose command puts memories on a file system that fails as rule says from the
// last put on, and then returns what then returns.
func putting(dir string, armed *atomic.Bool, rule fault.Rule, ids []string,
	then func() error) func(*App) *cobra.Command {
	return func(a *App) *cobra.Command {
		root := &cobra.Command{Use: "memctl"}
		root.AddCommand(&cobra.Command{Use: "put", RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			faulty := func(o *varve.Options) {
				storetest.Of(o).System = vfs.System{FS: fault.New(vfs.OS(), func(op *fault.Op) error {
					if !armed.Load() {
						return nil
					}
					return rule(op)
				})}
			}
			return a.WithIn(cmd.Context(), dir, Create, faulty, func(st *varve.Store) error {
				for _, id := range ids {
					if _, err := st.Put(cmd.Context(), varve.Memory{ID: id, Content: "c"}); err != nil {
						return err
					}
					fmt.Fprintln(a.Out, id)
				}
				armed.Store(true)
				return then()
			})
		})})
		return root
	}
}

func stored(t *testing.T, dir, id string) {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Get(t.Context(), id); err != nil {
		t.Errorf("the memory is not stored: %v", err)
	}
}

// misleads reports what a message about a durable write must not say.
func misleads(message string) bool {
	for _, s := range []string{"run the command again", "nothing was written", "retry", "try again"} {
		if strings.Contains(message, s) {
			return true
		}
	}
	return false
}

// A put is durable, and its files cannot be written: whatever the errno is, the command says that
// the put must not be repeated.
func TestDurableAndFailed(t *testing.T) {
	t.Parallel()
	files := func(op *fault.Op, err error) error {
		if strings.Contains(op.Path, "memories") || strings.Contains(op.Path, "tmp") {
			return err
		}
		return nil
	}
	for _, errno := range []syscall.Errno{
		syscall.EIO, syscall.EINVAL, syscall.EBUSY, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC,
		syscall.EDQUOT, syscall.EACCES, syscall.EROFS,
		syscall.EXDEV, syscall.ENOSYS, syscall.ENOTDIR, syscall.ENXIO, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EFBIG,
	} {
		t.Run(fmt.Sprint(int(errno)), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var out, errOut bytes.Buffer
			rule := func(op *fault.Op) error { return files(op, errno) }
			code := Run(t.Context(), putting(dir, new(atomic.Bool), rule, []string{"a"}, func() error { return nil }),
				[]string{"put"}, nil, &out, &errOut, System())
			if said := errOut.String(); !strings.Contains(said, "do not repeat it") || misleads(said) {
				t.Errorf("%v: exit code %d: %s", errno, code, said)
			}
			stored(t, dir, "a")
		})
	}
}

// The answer of a command that only reads is complete, whatever its closing flush meets: the exit status is that
// of success, and a warning names the error.
func TestAnsweredAndFailed(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.EBUSY, syscall.EINVAL, syscall.EMFILE, syscall.ENOSPC,
		syscall.EACCES} {
		t.Run(fmt.Sprint(int(errno)), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			armed := new(atomic.Bool)
			rule := func(op *fault.Op) error {
				if armed.Load() && (strings.Contains(op.Path, "memories") || strings.Contains(op.Path, "tmp")) {
					return errno
				}
				return nil
			}
			var out, errOut bytes.Buffer
			Run(t.Context(), putting(dir, armed, rule, []string{"a"}, func() error { return nil }), []string{"put"}, nil, &out,
				&errOut, System())
			armed.Store(false)
			reading := func(a *App) *cobra.Command {
				root := &cobra.Command{Use: "memctl"}
				root.AddCommand(&cobra.Command{Use: "get", RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
					faulty := func(o *varve.Options) { storetest.Of(o).System = vfs.System{FS: fault.New(vfs.OS(), rule)} }
					return a.WithIn(cmd.Context(), dir, Read, faulty, func(st *varve.Store) error {
						m, err := st.Get(cmd.Context(), "a")
						if err == nil {
							fmt.Fprintln(a.Out, m.Content)
						}
						armed.Store(true)
						return err
					})
				})})
				return root
			}
			out.Reset()
			errOut.Reset()
			code := Run(t.Context(), reading, []string{"get"}, nil, &out, &errOut, System())
			if code != CodeOK || out.String() != "c\n" {
				t.Errorf("%v: exit code %d: %q, %s", errno, code, &out, &errOut)
			}
			if !strings.Contains(errOut.String(), "safe in the log") {
				t.Errorf("%v: no word of what is not in files: %s", errno, &errOut)
			}
		})
	}
}

// What fails after some of the commits of a command says that these are durable.
func TestDurableInPart(t *testing.T) {
	t.Parallel()
	for _, err := range []error{varve.ErrInvalid, varve.ErrConflict, syscall.EMFILE, varve.ErrTooManyFiles,
		varve.ErrDimension, context.Canceled, varve.ErrLocked} {
		dir := t.TempDir()
		var out, errOut bytes.Buffer
		code := Run(t.Context(), putting(dir, new(atomic.Bool), func(*fault.Op) error { return nil }, []string{"a", "b"},
			func() error { return err }),
			[]string{"put", "--json"}, nil, &out, &errOut, System())
		said := out.String()
		if code == 0 || !strings.Contains(said, "what the command wrote before (2 commits) is committed and durable") ||
			!strings.Contains(said, `"committed":2`) || misleads(said) {
			t.Errorf("%v: exit code %d: %s%s", err, code, said, &errOut)
		}
		stored(t, dir, "b")
	}
}

type fullOutput struct{ err error }

func (f fullOutput) Write([]byte) (int, error) { return 0, f.err }

// A full stdout, and one without a reader, are no reason to repeat a put.
func TestDurableAndOutputFull(t *testing.T) {
	t.Parallel()
	for _, err := range []error{syscall.ENOSPC, syscall.EPIPE, io.ErrClosedPipe, syscall.EIO} {
		for _, form := range []string{"--json", "--json=false"} {
			dir := t.TempDir()
			var errOut bytes.Buffer
			code := Run(t.Context(), putting(dir, new(atomic.Bool), func(*fault.Op) error { return nil }, []string{"a"},
				func() error { return nil }),
				[]string{"put", form}, nil, fullOutput{err}, &errOut, System())
			if said := errOut.String(); code == 0 ||
				!strings.Contains(said, "the change is committed and durable, do not repeat it") || misleads(said) {
				t.Errorf("%v: exit code %d: %s", err, code, said)
			}
			stored(t, dir, "a")
		}
	}
}

// No remedy that a failure after a commit has tells to repeat the command.
func TestOnceCommitted(t *testing.T) {
	t.Parallel()
	for _, c := range classes {
		if fix := onceCommitted(c.fix); misleads(fix) {
			t.Errorf("%q after a commit: %q", c.kind, fix)
		}
	}
	err := fmt.Errorf("closing the store: %w", syscall.EMFILE)
	if f := Classify(&committedError{commits: 1, done: true, err: err}); f.Code != CodeRefused || f.Committed != 1 ||
		f.Fix != starvedFix+"; memctl flush then writes what is not in the files yet" {
		t.Errorf("%+v", f)
	}
	if !Committed(errors.Join(io.EOF, &committedError{done: true, err: err})) || Committed(err) {
		t.Error("what is committed is not known")
	}
}
