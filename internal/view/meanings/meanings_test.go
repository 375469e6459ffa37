package meanings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
)

// bare returns a view that belongs to no store.
func bare() *Meanings {
	return &Meanings{notes: map[string]sections{}, used: map[Hash]int{}, lacks: map[Hash]section{}, next: 1}
}

// noted gives a note sections with these texts, and returns the hashes.
func noted(m *Meanings, path string, texts ...string) (list []Hash) {
	for _, text := range texts {
		list = append(list, hashOf(text))
	}
	m.drop(path)
	m.set(path, sections{lsn: 1, hashes: list})
	return list
}

func add(t *testing.T, m *Meanings, h Hash, v ...float32) {
	t.Helper()
	if n, err := m.Add("", 1, []Vector{{h, v}}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

// TestOtherDimension: vectors of another dimension replace those that the view has, whose texts lack one again.
func TestOtherDimension(t *testing.T) {
	t.Parallel()
	m := bare()
	one, two := noted(m, "a", "one", "common")[0], noted(m, "b", "common", "two")[1]
	add(t, m, one, 1, 2)
	add(t, m, two, 3, 4)
	if len(m.lacks) != 1 || m.dim != 2 {
		t.Fatal(len(m.lacks), m.dim)
	}
	add(t, m, two, 1, 2, 3)
	if m.dim != 3 || len(m.added) != 1 || m.hasVector(one) || !m.hasVector(two) {
		t.Errorf("dimension %d, %d vectors", m.dim, len(m.added))
	}
	_, lacks := m.lacks[two]
	if want := []Hash{one, hashOf("common"), two}; !slices.Equal(m.queue, want) || len(m.lacks) != 2 || lacks {
		t.Errorf("%d texts lack a vector, %d are queued", len(m.lacks), len(m.queue))
	}
	if n, err := m.Add("", 1, []Vector{{one, nil}}); n != 0 || err != nil || m.dim != 3 {
		t.Error(n, err, m.dim)
	}
}

// TestQueueIsShort: the queue does not grow with the number of edits where nobody reads it, and keeps its order.
func TestQueueIsShort(t *testing.T) {
	t.Parallel()
	m := bare()
	noted(m, "a", "first")
	noted(m, "b", "second")
	for i := range 20_000 {
		noted(m, "c", "same", fmt.Sprint("text ", i))
		if most := 2*len(m.lacks) + queueSpare; len(m.queue) > most {
			t.Fatalf("%d texts are queued after %d edits, want at most %d", len(m.queue), i, most)
		}
	}
	m.compact()
	want := []Hash{hashOf("first"), hashOf("second"), hashOf("same"), hashOf("text 19999")}
	if !slices.Equal(m.queue, want) {
		t.Errorf("%d texts are queued, not the four in their order", len(m.queue))
	}
}

// TestPutBesideACutFile: another program cuts a mapped file of the view, in which a text is looked for.
func TestPutBesideACutFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut")
	}
	f := &view.Folder{FS: vfs.OS(), Path: t.TempDir()}
	const n = 1 << 12
	if err := os.WriteFile(filepath.Join(f.Path, "a"), make([]byte, n*hashBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	mapped, err := f.Map("a")
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Close()
	if err := os.Truncate(filepath.Join(f.Path, "a"), 1); err != nil {
		t.Fatal(err)
	}
	m := bare()
	m.segs = []*segment{{listing: listing{Vectors: n}, m: mapped, hashes: mapped.Bytes(), dim: 1}}
	if err := m.put("a.md", 1, []byte("# Title\n\ntext")); !errors.Is(err, errs.ErrCorrupt) {
		t.Error(err)
	}
}
