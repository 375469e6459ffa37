package words_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// distinct is a text of n words, none of them twice.
func distinct(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%x ", prefix, i)
	}
	return b.String()
}

// clean expects that verify finds nothing.
func clean(t *testing.T, st *varve.Store) {
	t.Helper()
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v %v", f, err)
	}
}

// finds expects the ids that a search finds first.
func finds(t *testing.T, st *varve.Store, text string, ids ...string) {
	t.Helper()
	hits, err := st.Search(t.Context(), varve.Query{Text: text, Limit: max(1, len(ids))})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var got []string
	for _, h := range hits {
		got = append(got, h.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("%q finds %q, want %q", text, got, ids)
	}
}

// TestHugeDocument: documents with very many words, in one of which no two adjoin without making another
// one: they are found by any of them from the log, from files, after merges and after a rebuild.
func TestHugeDocument(t *testing.T) {
	words, size := 40_000, 120<<10
	if proofs.Long() {
		words, size = 500_000, 15<<20
	} else {
		t.Parallel()
	}
	var han strings.Builder // pairs as different as can be
	for i := 0; han.Len() < size; i++ {
		han.WriteRune(rune(0x4e00 + i*7919%20000))
		han.WriteRune(rune(0x4e00 + i/20000*31%20000 + i%3))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	dir := t.TempDir()
	st := open(t, dir)
	look := func(when string) {
		t.Helper()
		began := time.Now()
		for _, i := range []int{0, 1, words / 3, words - 1} {
			finds(t, st, fmt.Sprintf("q%x", i), "many")
		}
		finds(t, st, string([]rune(han.String())[9:11]), "pairs")
		finds(t, st, fmt.Sprintf(`"q%x q%x" -port1`, words/2, words/2+1), "many")
		if hits, err := st.Search(t.Context(),
			varve.Query{Text: fmt.Sprintf(`"q%x q%x"`, words/2, words/2)}); err != nil || len(hits) > 0 {
			t.Errorf("%s: %d hits, %v", when, len(hits), err)
		}
		t.Logf("%s: %v", when, time.Since(began))
	}
	for id, text := range map[string]string{"many": distinct("q", words), "pairs": han.String()} {
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: text}); err != nil {
			t.Fatal(err)
		}
	}
	look("log")
	flush(t, st)
	look("files")
	for i := range 9 {
		put(t, st, 10*i, 10*i+10)
		flush(t, st)
	}
	if list := files(t, dir); len(list) > 12 {
		t.Errorf("nothing was merged: %q", list)
	}
	look("merged")
	clean(t, st)
	if err := st.Admin().RebuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	look("rebuilt")
	clean(t, st)
	runtime.ReadMemStats(&after)
	t.Logf("%d MiB more memory", (after.Sys-before.Sys)>>20)
	if most := uint64(1400 << 20); proofs.Long() && after.Sys-before.Sys > most {
		t.Errorf("it has taken %d MiB", (after.Sys-before.Sys)>>20)
	}
}

// TestRebuildHolds: a rebuild has read little more than what it has written: where documents are large, few
// are in memory at a time.
func TestRebuildHolds(t *testing.T) {
	t.Parallel()
	const docs = 24
	dir := t.TempDir()
	st := open(t, dir)
	for i := range docs {
		if _, err := st.Put(t.Context(),
			varve.Memory{ID: fmt.Sprintf("d%02d", i),
				Content: strings.Repeat(fmt.Sprintf("number%d boat ", i), 80_000)}); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, st)
	if err := errors.Join(st.Close(), os.RemoveAll(filepath.Join(dir, folder))); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	read, most := map[string]bool{}, 0 // since the last segment
	count := func(op *wrap.Op, call func() error) error {
		mu.Lock()
		switch {
		case op.Kind == wrap.Open && filepath.Base(filepath.Dir(op.Path)) == "memories":
			read[op.Path] = true
			most = max(most, len(read))
		case op.Kind == wrap.Rename && filepath.Ext(op.To) == ".seg":
			clear(read)
		}
		mu.Unlock()
		return call()
	}
	o := storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{WordsRows: 2, Inline: true, FS: wrap.New(vfs.OS(), count)}})
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	flush(t, st)
	if most == 0 || most > docs/3 {
		t.Errorf("%d documents of a MiB were read between two segments", most)
	}
	finds(t, st, "number17", "d17")
	clean(t, st)
}
