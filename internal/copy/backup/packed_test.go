package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
)

// noSeal seals nothing.
type noSeal struct{ io.Writer }

func (noSeal) Close() error { return nil }

// TestLogReadAgain verifies that a backup that cannot be read again, because it is sealed or goes to a writer, is
// refused if the log that was copied is not the log that was verified.
func TestLogReadAgain(t *testing.T) {
	t.Parallel()
	log := bytes.Repeat([]byte("segment "), 300<<10)
	other := bytes.Clone(log)
	other[len(other)/2] ^= 1
	gone := errors.New("gone")
	for name, again := range map[string]struct {
		log []byte
		err error
	}{"same": {log: log}, "another byte": {log: other}, "shorter": {log: log[:len(log)-1]}, "gone": {log, gone}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			f, err := newPacked(&Source{Clock: time.Now}, target{}, repair.BackupOptions{Output: &out,
				Seal: func(w io.Writer) (io.WriteCloser, error) { return noSeal{w}, nil }})
			if err != nil {
				t.Fatal(err)
			}
			info := &repair.BackupInfo{From: repair.Position{LSN: 1, Chain: "0000000000000001"}}
			if err := f.begin(info, nil); err != nil {
				t.Fatal(err)
			}
			reads := 0
			if err := f.segment(segment.Name(1), func(out io.WriterAt) error {
				b, err := log, error(nil)
				if reads++; reads > 1 {
					b, err = again.log, again.err
				}
				half := len(b) / 2
				_, werr := out.WriteAt(b[:half], 0)
				if werr == nil {
					_, werr = out.WriteAt(b[half:], int64(half))
				}
				return errors.Join(werr, err)
			}); err != nil {
				t.Fatal(err)
			}
			err = f.finish(context.Background(), info, []byte("{}"), nil)
			if derr := f.discard(); derr != nil {
				t.Error(derr)
			}
			switch {
			case name == "same" && err != nil, again.err != nil && !errors.Is(err, gone),
				name != "same" && again.err == nil && !errors.Is(err, errs.ErrCorrupt):
				t.Errorf("%d reads: %v", reads, err)
			}
		})
	}
}

// TestFinishFileLeft verifies that a packed backup that has its name is complete although its unfinished folder cannot
// be removed, because it has a file of the user: the folder is left over.
func TestFinishFileLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "b")
	n, err := makeFolder(target{fs: vfs.OS(), dir: dir, source: t.TempDir(), kind: kindBackup, file: 0o600,
		folder: 0o700, random: func(b []byte) error { _, err := rand.Read(b); return err }})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(n.path(packedPart), []byte("packed"), 0o600),
		os.WriteFile(n.path("mine.txt"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := n.finishFile(packedPart); err != nil {
		t.Error(err)
	}
	if err := n.close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(dir); err != nil || string(b) != "packed" {
		t.Errorf("%q, %v", b, err)
	}
	if len(n.left) != 1 || !strings.Contains(n.left[0], n.part) {
		t.Errorf("left over: %q", n.left)
	}
}
