package logs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/storetest"
)

// What an interrupted purge has left of the views' files is overwritten by a background round as well:
// the views are replaced before their old files are examined, and not in parallel.
func TestCutPurgeInBackground(t *testing.T) {
	t.Parallel()
	const word = "xsecretzebra" // no month and no day of the week, which are words too, begins as it does
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = fmt.Sprint("m", i)
		if _, err := st.Put(t.Context(), varve.Memory{ID: ids[i], Content: fmt.Sprint(word, " number ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "view_index", "words", "*.seg"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	files := map[string]int{}
	for _, name := range names {
		fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if b, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil || !bytes.Contains(b, []byte(word)) {
			t.Fatalf("%s does not have the word: %v", name, err)
		}
		files[name] = fd
	}
	storetest.Inner(st).Engine.Log().Purges().Fail() // like a process that finds tmp/purge of a worker that was killed
	for _, id := range ids {
		if err := st.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Put(t.Context(), varve.Memory{ID: "other", Content: "harmless"}); err != nil {
		t.Fatal(err)
	}
	storetest.Inner(st).Flusher.FlushBackground(flush.Unpaced(t.Context()))
	for name, fd := range files {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(word)) {
			t.Errorf("%s still has the word", filepath.Base(name))
		}
	}
}
