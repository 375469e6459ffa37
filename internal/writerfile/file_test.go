package writerfile

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/writer"
)

var store = [16]byte{1, 2, 3}

func numbered(from, to int) (list []writer.Writer) {
	for i := from; i <= to; i++ {
		list = append(list, writer.Writer{Number: uint32(i), Since: uint64(i) * 8, Agent: strings.Repeat("n", 200)})
	}
	return list
}

func newFile(t *testing.T) (f *File, temp string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	return New(vfs.OS(), dir, store), filepath.Join(dir, "temp")
}

// TestFile verifies that lines that were written are read back, from the end and as a whole, that a line whose checksum
// does not match is ignored, and that nothing is appended after it.
func TestFile(t *testing.T) {
	t.Parallel()
	f, temp := newFile(t)
	below := func(position uint64, want uint32) {
		t.Helper()
		if w, err := f.Below(position); w.Number != want || err != nil {
			t.Errorf("below %d is %d, want %d: %v", position, w.Number, want, err)
		}
	}
	read := func(want int, whole bool) {
		t.Helper()
		list, _, is, err := f.Read()
		if len(list.All()) != want || is != whole || err != nil {
			t.Errorf("%d writers, whole %t, want %d, %t: %v", len(list.All()), is, want, whole, err)
		}
	}
	below(1<<60, 0)
	read(0, false)
	const n = 1000 // more than is read at the end first
	if err := f.Write(numbered(1, n), temp, 0o600); err != nil {
		t.Fatal(err)
	}
	read(n, true)
	below(1<<60, n)
	below(n*8, n-1)
	below(16, 1)
	below(8, 0)
	if done, err := f.Append(numbered(n+1, n+2), 0o600); !done || err != nil {
		t.Fatal(done, err)
	}
	read(n+2, true)
	below(1<<60, n+2)
	info, err := os.Stat(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(f.Path(), info.Size()-10); err != nil {
		t.Fatal(err)
	}
	read(n+1, false)
	below(1<<60, n+1)
	if done, err := f.Append(numbered(n+3, n+3), 0o600); done || err != nil {
		t.Error("a line was appended to a torn one", err)
	}
	if err := os.Truncate(f.Path(), 0); err != nil {
		t.Fatal(err)
	}
	read(0, true)
	if done, err := f.Append(numbered(1, 1), 0o600); done || err != nil {
		t.Error("a line was appended to an empty file", err)
	}
}

// TestFileOfAnother verifies that the file of another store is ignored, and so is a folder in its place.
func TestFileOfAnother(t *testing.T) {
	t.Parallel()
	f, temp := newFile(t)
	if err := f.Write(numbered(1, 3), temp, 0o600); err != nil {
		t.Fatal(err)
	}
	other := New(vfs.OS(), filepath.Dir(filepath.Dir(f.Path())), [16]byte{9})
	if list, _, whole, err := other.Read(); len(list.All()) != 0 || whole || err != nil {
		t.Error(list.All(), whole, err)
	}
	if w, err := other.Below(1 << 60); w.Number != 0 || err != nil {
		t.Error(w, err)
	}
	if err := os.Remove(f.Path()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	if list, _, whole, err := f.Read(); len(list.All()) != 0 || whole || err != nil {
		t.Error(list.All(), whole, err)
	}
}

// TestSparse verifies that a large file that is not a list of writers is not read completely.
func TestSparse(t *testing.T) {
	t.Parallel()
	f, temp := newFile(t)
	if err := f.Write(numbered(1, 3), temp, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{8 << 20, most, 4 << 30} {
		if err := os.Truncate(f.Path(), size); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w, err := f.Below(1 << 60)
		runtime.ReadMemStats(&after)
		if read := after.TotalAlloc - before.TotalAlloc; w.Number != 0 || err != nil || read > 16<<20 {
			t.Errorf("of %d bytes: %+v, %v, with %d bytes of memory", size, w, err, read)
		}
	}
}
