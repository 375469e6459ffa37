package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Op is an operation, of the kinds of package wrap.
type Op = wrap.Op

// Changing is a filter for New. It keeps changes, syncs, locks and stores into shared pages, but no reads and closes.
func Changing(op *Op) bool {
	switch op.Kind {
	case wrap.Lock, wrap.TryLock, wrap.Unlock, wrap.Lease:
		return true
	}
	return op.Kind.Changes()
}

// New wraps a file system. After each operation for which keep returns true, it calls line with the text of Format. If
// keep is nil, it does so after every operation. root is removed from the paths in the text.
func New(inner vfs.FS, root string, keep func(*Op) bool, line func(string)) vfs.FS {
	return wrap.New(inner, func(op *Op, call func() error) error {
		err := call()
		if keep == nil || keep(op) {
			line(Format(op, root, err))
		}
		return err
	})
}

// Format returns a line of text about an operation that ended with err; nil means success. The paths in the line are
// relative to root.
func Format(op *Op, root string, err error) string {
	var b strings.Builder
	path, to := op.Relative(root)
	b.WriteString(op.Kind.String())
	b.WriteByte(' ')
	b.WriteString(path)
	switch op.Kind {
	case wrap.Rename, wrap.RenameNew, wrap.Exchange, wrap.Link, wrap.LinkUnnamed:
		b.WriteString(" " + to)
	case wrap.Read, wrap.Write:
		fmt.Fprintf(&b, " off=%d size=%d", op.Off, op.Size)
	case wrap.Truncate:
		fmt.Fprintf(&b, " size=%d", op.Length)
	case wrap.Create:
		if op.Flag&os.O_EXCL != 0 {
			b.WriteString(" excl")
		}
		if op.Flag&os.O_TRUNC != 0 {
			b.WriteString(" trunc")
		}
	case wrap.OpenShared:
		if op.Flag&os.O_CREATE != 0 {
			b.WriteString(" create")
		}
	case wrap.Lock, wrap.TryLock:
		if op.Mode == vfs.ModeExclusive {
			b.WriteString(" exclusive")
		} else {
			b.WriteString(" shared")
		}
	case wrap.Load:
		fmt.Fprintf(&b, " word=%d", op.Word)
	case wrap.Store, wrap.CompareAndSwap:
		fmt.Fprintf(&b, " word=%d value=%d", op.Word, op.Value)
	}
	if err != nil {
		b.WriteString(": " + reason(err))
	}
	return b.String()
}

// reason returns the text of an error in words that are the same on every system.
func reason(err error) string {
	for _, known := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrClosed, errors.ErrUnsupported,
		io.EOF} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return err.Error()
}
