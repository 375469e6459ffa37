package logs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// manyWords is a number of memories whose words a Close leaves to the next process, even if a background round has
// written some of them before.
const manyWords = 12_000

// putWords puts memories, each with a word of its own.
func putWords(t *testing.T, st *varve.Store, n int) {
	t.Helper()
	_, err := st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
		for i := range n {
			if !yield(varve.Memory{ID: fmt.Sprintf("m%05d", i), Content: fmt.Sprintf("number%d", i)}) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wordsAt returns the position of the log up to which the files of the words are made; 0: there are none.
func wordsAt(t *testing.T, dir string) uint64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "view_index", "words", "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	var m struct{ LSN uint64 }
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.LSN
}

func finds(t *testing.T, st *varve.Store, i int) {
	t.Helper()
	hits, err := st.Search(t.Context(), varve.Query{Text: fmt.Sprintf("number%d", i)})
	if err != nil || len(hits) != 1 || hits[0].ID != fmt.Sprintf("m%05d", i) {
		t.Errorf("number%d: %v, %v", i, hits, err)
	}
}

// A Close with many changes leaves their words to the next process: searches are exact without the files of the words,
// and a background round makes them, or the Close of a process that has searched and has no background.
func TestCloseLeavesWords(t *testing.T) {
	t.Parallel()
	dir, other, ending := t.TempDir(), filepath.Join(t.TempDir(), "other"), filepath.Join(t.TempDir(), "ending")
	st := fixture.Open(t, dir, nil)
	putWords(t, st, manyWords)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	fixture.CopyDir(t, dir, other)
	fixture.CopyDir(t, dir, ending)
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true})
	log := storetest.Inner(st).Engine.Log()
	at, files := wordsAt(t, dir), log.Flushed()
	if at >= log.Spilled() || files != log.Durable() || log.Spilled() != files {
		t.Fatalf("a Close has made words up to %d, files up to %d, the index up to %d, of %d", at, files, log.Spilled(),
			log.Durable())
	}
	finds(t, st, 0)
	finds(t, st, manyWords-1)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if at := wordsAt(t, dir); at != log.Spilled() {
		t.Errorf("a process that has made the words for its searches leaves files up to %d, not %d", at, log.Spilled())
	}
	st = fixture.Open(t, ending, &varve.Options{NoBackground: true})
	finds(t, st, 0)
	if err := st.CloseWithin(time.Minute); err != nil {
		t.Fatal(err)
	}
	if now := wordsAt(t, ending); now != at {
		t.Errorf("a process that has to end soon has made the words from %d to %d", at, now)
	}
	st = fixture.Open(t, other, &varve.Options{NoBackground: true})
	storetest.Inner(st).Flusher.FlushBackground(t.Context())
	if at, to := wordsAt(t, other), storetest.Inner(st).Engine.Log().Spilled(); at != to {
		t.Errorf("a background round has made words up to %d, not %d", at, to)
	}
	finds(t, st, manyWords/2)
}

// TestCloseGoesOnWithWords: a process that has left the words of many changes is followed by short ones without a
// background, each of which writes one memory. None makes all of the words; each continues where the one before ended.
func TestCloseGoesOnWithWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := fixture.Open(t, dir, nil)
	putWords(t, st, 3*manyWords)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	was, processes := wordsAt(t, dir), 0
	for to := uint64(0); was != to; processes++ {
		st = fixture.Open(t, dir, &varve.Options{NoBackground: true})
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("p", processes), Content: "one more"}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		at := wordsAt(t, dir)
		if at <= was {
			t.Fatalf("process %d has made the words from %d to %d", processes, was, at)
		}
		was, to = at, storetest.Inner(st).Engine.Log().Spilled()
	}
	if processes < 2 || processes > 5 {
		t.Errorf("%d processes have made the words", processes)
	}
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for i := range 6 {
		finds(t, st, i*manyWords/2)
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%v, %v", f, err)
	}
}

// The Close of a process without a background leaves no words: the next process may have none either.
func TestCloseMakesWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	putWords(t, st, manyWords/2)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if at, to := wordsAt(t, dir), storetest.Inner(st).Engine.Log().Spilled(); at != to {
		t.Errorf("words up to %d, not %d", at, to)
	}
}

// A store may be closed without any time: nothing is lost.
func TestCloseWithinNothing(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, -time.Second} {
		dir := t.TempDir()
		st := fixture.Open(t, dir, nil)
		putMany(t, st, 10)
		if err := st.CloseWithin(wait); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("within %v: %v", wait, err)
		}
		st = fixture.Open(t, dir, nil)
		if n, err := st.Count(t.Context()); n != 10 || err != nil {
			t.Errorf("within %v: %d memories, %v", wait, n, err)
		}
	}
}
