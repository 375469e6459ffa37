package words_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/internal/view/words"
)

func TestMain(m *testing.M) { storetest.Main(m, upgrading) }

var folder = filepath.Join(places.Views, words.Name)

func open(t *testing.T, dir string) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func put(t *testing.T, st *varve.Store, from, to int) {
	t.Helper()
	b := new(varve.Batch)
	for i := from; i < to; i++ {
		b.Put(varve.Memory{ID: fmt.Sprintf("m%04d", i), Content: fmt.Sprintf("the boat number%d sails to port%d", i, i%7),
			Timestamp: time.Unix(int64(i), 0), Metadata: map[string]any{
				"session_id": fmt.Sprint("s", i%5), "speaker": []string{"Anna", "Bert"}[i%2],
				"tags": []string{"trip", fmt.Sprint("t", i%3)},
			}})
	}
	if err := st.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// answers are what some queries find, with their scores, and what is listed in some orders.
func answers(t *testing.T, st *varve.Store) string {
	t.Helper()
	var b strings.Builder
	for _, q := range []string{"port3", "boats sailing to port1", "number12*", "tag:t1 anna", `"sails to port2"`,
		"boat -bert", "anna"} {
		hits, err := st.Search(t.Context(), varve.Query{Text: q, Limit: 20})
		if err != nil {
			t.Fatalf("%q: %v", q, err)
		}
		for _, h := range hits {
			fmt.Fprintf(&b, "%s %x;", h.ID, h.Score)
		}
		fmt.Fprintln(&b, len(hits))
	}
	for _, key := range []string{"timestamp", "-score", "size"} {
		fmt.Fprintln(&b, listing(t, st, key, 0, 7, nil))
	}
	for s, err := range st.Sessions().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, s.ID, s.Memories, s.Bytes)
	}
	n, err := st.Count(t.Context(), varve.Since(time.Unix(100, 0)), varve.Until(time.Unix(1<<30, 0)))
	fmt.Fprintln(&b, n, err)
	return b.String()
}

func flush(t *testing.T, st *varve.Store) {
	t.Helper()
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestWhereverItLies: the answer is the same from the log alone, from files, from files and log, after
// many rounds and merges, in another process, and after a rebuild.
func TestWhereverItLies(t *testing.T) {
	t.Parallel()
	one := open(t, t.TempDir())
	put(t, one, 0, 300)
	want := answers(t, one)
	if strings.Contains(want, ";0\n") || !strings.Contains(want, "m0003") {
		t.Fatal(want)
	}
	dir := t.TempDir()
	st := open(t, dir)
	other := open(t, dir)
	for i := 0; i < 300; i += 10 {
		put(t, st, i, i+10)
		if i%20 == 0 {
			flush(t, st)
		}
		if hits, err := other.Search(t.Context(),
			varve.Query{Text: fmt.Sprint("number", i+9)}); err != nil || len(hits) == 0 ||
			hits[0].ID != fmt.Sprintf("m%04d", i+9) {
			t.Fatalf("%d: %v, %v", i, hits, err)
		}
	}
	for name, s := range map[string]*varve.Store{"files and log": st, "another process": other} {
		if got := answers(t, s); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	flush(t, st)
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v %v", f, err)
	}
	if got := answers(t, open(t, dir)); got != want {
		t.Errorf("files:\n%s\nwant\n%s", got, want)
	}
	if err := st.Admin().RebuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, open(t, dir)); got != want {
		t.Errorf("rebuilt:\n%s\nwant\n%s", got, want)
	}
}

// TestSpoilt: whatever is done to the files, the answer is right, and the next round that sees it
// makes them again.
func TestSpoilt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 100)
	flush(t, st)
	put(t, st, 50, 120)
	if err := st.Delete(t.Context(), "m0003"); err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	want := answers(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 1))
	names, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil || len(names) < 3 {
		t.Fatal(names, err)
	}
	found := 0
	for range 60 {
		name := filepath.Join(dir, folder, names[r.IntN(len(names))].Name())
		was, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b := slices.Clone(was)
		switch r.IntN(8) {
		case 0:
			b = nil
		case 1:
			b = b[:r.IntN(len(b))]
		default:
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		err = os.WriteFile(name, b, 0o600)
		if r.IntN(10) == 0 {
			err = os.Remove(name)
		}
		if err != nil {
			t.Fatal(err)
		}
		st, err := varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := answers(t, st); got != want {
			t.Errorf("seed %d: %s:\n%s\nwant\n%s", seed, name, got, want)
		}
		for range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
			found++
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found < 40 {
		t.Errorf("seed %d: verify found %d of 60", seed, found)
	}
}

// spoil flips a bit of the first segment at every so many bytes, behind what is read when it is opened.
func spoil(t *testing.T, dir string, step int) (segment string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, folder, "*.seg"))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	b, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 200<<10 {
		t.Fatalf("one block of the segment is opened with it, and it has %d bytes", len(b))
	}
	for at := 100 << 10; at < len(b)-1000; at += step {
		b[at] ^= 1
	}
	if err := os.WriteFile(list[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// TestHealed: a round that meets damage makes the files again.
func TestHealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 3000)
	flush(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	segment := spoil(t, dir, 64<<10)
	st = open(t, dir)
	put(t, st, 50, 110)
	flush(t, st)
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := os.Stat(segment); err == nil {
		t.Errorf("%s is still there", segment)
	}
	if hits, err := st.Search(t.Context(), varve.Query{Text: "number7 number107"}); err != nil || len(hits) < 2 {
		t.Error(hits, err)
	}
}

// TestPurged: no file has a word of what was purged, and of what was replaced before.
func TestPurged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 100)
	for _, text := range []string{"a zebra", "an okapi"} {
		if _, err := st.Put(t.Context(),
			varve.Memory{ID: "secret", Content: text, Metadata: map[string]any{"session_id": "s1"}}); err != nil {
			t.Fatal(err)
		}
		flush(t, st)
	}
	if hits, err := st.Search(t.Context(),
		varve.Query{Text: "okapi"}); err != nil || len(hits) == 0 || hits[0].ID != "secret" {
		t.Fatal(hits, err)
	}
	if _, err := st.Admin().Purge(t.Context(), "secret"); err != nil {
		t.Fatal(err)
	}
	if hits, err := st.Search(t.Context(), varve.Query{Text: "okapi zebra secret"}); err != nil || len(hits) != 0 {
		t.Error(hits, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, word := range []string{"zebra", "okapi", "secret"} {
			if bytes.Contains(b, []byte(word)) && !strings.Contains(path, "wal") {
				t.Errorf("%s has %s", path, word)
			}
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// A purge overwrites also the segments that this process has mapped for its own searches.
func TestPurgedWhereSearched(t *testing.T) {
	t.Parallel()
	st := open(t, t.TempDir())
	put(t, st, 0, 3000)
	flush(t, st)
	for range 2 {
		if hits, err := st.Search(t.Context(), varve.Query{Text: "number7"}); err != nil || len(hits) == 0 {
			t.Fatal(hits, err)
		}
	}
	rep, err := st.Admin().Purge(t.Context(), "m0007")
	if err != nil || len(rep.Unlinked) > 0 || len(rep.Left) > 0 {
		t.Errorf("%v: not overwritten: %q, left: %v", err, rep.Unlinked, rep.Left)
	}
	if hits, err := st.Search(t.Context(), varve.Query{Text: "number8"}); err != nil || len(hits) == 0 {
		t.Error(hits, err)
	}
}

// A purge writes again only the segments that have something of what is gone. The others stay as they are,
// so that what it costs does not grow with the store, and no search has to read the documents meanwhile.
func TestPurgedSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 3000)
	flush(t, st)
	put(t, st, 3000, 3020)
	flush(t, st)
	segments := func() map[string]os.FileInfo {
		names, err := filepath.Glob(filepath.Join(dir, folder, "*.seg"))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]os.FileInfo{}
		for _, name := range names {
			if all[name], err = os.Stat(name); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	before := segments()
	if _, err := st.Admin().Purge(t.Context(), "m3007"); err != nil {
		t.Fatal(err)
	}
	stay, gone := 0, 0
	for name, info := range before {
		switch now, err := os.Stat(name); {
		case err != nil:
			gone++
		case os.SameFile(info, now):
			stay++
		default:
			t.Errorf("%s is another one now", name)
		}
	}
	if stay == 0 || gone == 0 || stay+gone != len(before) {
		t.Errorf("of %d segments %d stay, %d are gone", len(before), stay, gone)
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v, %v", f, err)
	}
	if hits, err := st.Search(t.Context(),
		varve.Query{Text: "number3007 number8"}); err != nil || len(hits) == 0 || hits[0].ID != "m0008" {
		t.Error(hits, err)
	}
}

// What a search finds damaged, the next flush makes again.
func TestHealedWhereSearched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 3000)
	flush(t, st)
	spoil(t, dir, 8<<10)
	for _, text := range []string{"boat port3", "number7 number107"} {
		if hits, err := st.Search(t.Context(), varve.Query{Text: text}); err != nil || len(hits) < 2 {
			t.Error(hits, err)
		}
	}
	flush(t, st) // of which nobody has changed a document
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v, %v", f, err)
	}
}

// Where no file can be opened just now, no memory becomes one without words.
func TestStarved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 100)
	flush(t, st)
	if err := errors.Join(st.Close(), os.RemoveAll(filepath.Join(dir, folder)),
		os.RemoveAll(filepath.Join(dir, "wal"))); err != nil {
		t.Fatal(err)
	}
	var starved atomic.Bool
	o := storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if starved.Load() && op.Kind == wrap.Open && strings.Contains(op.Path, "memories/") {
				return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EMFILE}
			}
			return call()
		})}})
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	starved.Store(true)
	if hits, err := st.Search(t.Context(), varve.Query{Text: "number7"}); err == nil {
		t.Errorf("%d found where nothing can be read", len(hits))
	}
	flush(t, st)
	starved.Store(false)
	if hits, err := st.Search(t.Context(),
		varve.Query{Text: "number7"}); err != nil || len(hits) == 0 || hits[0].ID != "m0007" {
		t.Error(hits, err)
	}
}
