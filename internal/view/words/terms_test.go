package words_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	varve "github.com/varve-db/varve"

	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/wal"
)

// older are the options of a program that knows the first version of the terms only.
func older() *varve.Options {
	return storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{Lacks: uint64(wal.FeatureTerms)}})
}

// firstTerms makes a store whose files have terms of the first version.
func firstTerms(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	st := with(t, dir, older())
	put(t, st, 0, 300)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "cpp",
		Content: "the boat is written in C++, not in C, Straße 2.10"}); err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if m := manifestOf(t, dir); m.Format != 1 || m.Terms != 0 {
		t.Fatalf("%+v", m)
	}
	return dir
}

func with(t *testing.T, dir string, o *varve.Options) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// idsOf are those that a query finds.
func idsOf(t *testing.T, st *varve.Store, text string) string {
	t.Helper()
	hits, err := st.Search(t.Context(), varve.Query{Text: text})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var ids []string
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return strings.Join(ids, " ")
}

// sound expects that verify finds nothing.
func sound(t *testing.T, st *varve.Store) {
	t.Helper()
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Errorf("%+v %v", f, err)
	}
}

// TestTermsBesideAnOlderProgram: while a program that knows only the first version of the terms has the store open, the
// files keep it, whichever of the two writes them, and both find what they found before. When it has closed, the next
// round makes them again, and it is refused from then on.
func TestTermsBesideAnOlderProgram(t *testing.T) {
	t.Parallel()
	dir := firstTerms(t)
	old, now := with(t, dir, older()), open(t, dir)
	want := answers(t, old)
	for round, writes := range []*varve.Store{now, old, now} {
		id := fmt.Sprint("new", round)
		if _, err := writes.Put(t.Context(), varve.Memory{ID: id, Content: "a harbour"}); err != nil {
			t.Fatal(err)
		}
		flush(t, writes)
		if m := manifestOf(t, dir); m.Format != 1 || m.Terms != 0 {
			t.Errorf("round %d: %+v", round, m)
		}
		for _, st := range []*varve.Store{old, now} {
			if got := idsOf(t, st, "harbour"); !strings.Contains(got, id) {
				t.Errorf("round %d: %q", round, got)
			}
			// What the index has not is looked for in the documents.
			if got := idsOf(t, st, `written "not in"`); got != "cpp" {
				t.Errorf("round %d: %q", round, got)
			}
			if got := idsOf(t, st, "written -not"); got != "" {
				t.Errorf("round %d: %q", round, got)
			}
			sound(t, st)
		}
		if err := writes.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		flush(t, writes)
		if got := answers(t, now); got != want {
			t.Errorf("round %d:\n%s\nwant\n%s", round, got, want)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, now, 0, 1)
	flush(t, now)
	if m := manifestOf(t, dir); m.Format != 2 || m.Terms != 2 {
		t.Errorf("%+v", m)
	}
	for text, want := range map[string]string{"C++": "cpp", "strasse": "cpp", "2.10": "cpp", `"not in c"`: "cpp",
		"+not": "cpp"} {
		if got := idsOf(t, now, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := answers(t, now); got != want {
		t.Errorf("in the second version:\n%s\nwant\n%s", got, want)
	}
	sound(t, now)
	if _, err := varve.Open(t.Context(), dir, older()); !errors.Is(err, varve.ErrNewerFormat) {
		t.Errorf("an older program opens it: %v", err)
	}
	o := older()
	o.ReadOnly = true
	if got := answers(t, with(t, dir, o)); got != want {
		t.Errorf("an older program that reads:\n%s\nwant\n%s", got, want)
	}
}

// TestTermsAnswerThroughout: while the files are made again, searches of all processes answer from those that
// are there,
// also what is put meanwhile; documents and log stay. A round that fails leaves the old ones, and the next one ends it.
func TestTermsAnswerThroughout(t *testing.T) {
	t.Parallel()
	dir := firstTerms(t)
	var written atomic.Int64
	var fail atomic.Bool
	during := make(chan chan bool, 1)
	o := storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{WordsRows: 50, FS: wrap.New(vfs.OS(),
			func(op *wrap.Op, call func() error) error {
				if op.Kind == wrap.Rename && filepath.Ext(op.To) == ".seg" {
					switch n := written.Add(1); {
					case n == 3 && fail.Load():
						return errors.New("the disk fails")
					case n == 4 && !fail.Load():
						done := make(chan bool)
						during <- done
						<-done
					}
				}
				return call()
			})}})
	ro := with(t, dir, &varve.Options{ReadOnly: true})
	want := answers(t, ro)
	before := files(t, dir)
	memories, err := os.ReadDir(filepath.Join(dir, "memories"))
	if err != nil {
		t.Fatal(err)
	}
	st := with(t, dir, o)
	fail.Store(true)
	_ = st.Flush(t.Context())
	if m := manifestOf(t, dir); m.Format != 1 || written.Load() == 0 {
		t.Fatalf("%+v, %d segments", m, written.Load())
	}
	if got := files(t, dir); !slices.Equal(got, before) {
		t.Errorf("a round that failed left %q, was %q", got, before)
	}
	for _, st := range []*varve.Store{st, ro} {
		if got := answers(t, st); got != want {
			t.Errorf("behind a round that failed:\n%s\nwant\n%s", got, want)
		}
	}
	fail.Store(false)
	written.Store(0)
	put(t, st, 0, 1) // as it is: so that the round has something to do
	flushed := make(chan error, 1)
	go func() { flushed <- st.Flush(context.Background()) }()
	select {
	case done := <-during:
		if m := manifestOf(t, dir); m.Format != 1 {
			t.Errorf("%+v", m)
		}
		for _, st := range []*varve.Store{st, ro, with(t, dir, &varve.Options{ReadOnly: true})} {
			if got := answers(t, st); got != want {
				t.Errorf("while it is made again:\n%s\nwant\n%s", got, want)
			}
		}
		if _, err := st.Put(t.Context(), varve.Memory{ID: "meanwhile", Content: "lighthouse"}); err != nil {
			t.Error(err)
		}
		for _, st := range []*varve.Store{st, ro} {
			if got := idsOf(t, st, "lighthouse"); got != "meanwhile" {
				t.Errorf("%q", got)
			}
		}
		close(done)
		err = <-flushed
	case err = <-flushed:
		t.Error("the files were not made again")
	}
	if err != nil {
		t.Fatal(err)
	}
	if m := manifestOf(t, dir); m.Format != 2 || m.Terms != 2 {
		t.Errorf("%+v", m)
	}
	for _, st := range []*varve.Store{st, ro} {
		if got := idsOf(t, st, "lighthouse"); got != "meanwhile" {
			t.Errorf("%q", got)
		}
		if got := idsOf(t, st, "+C++"); got != "cpp" {
			t.Errorf("%q", got)
		}
	}
	if err := st.Delete(t.Context(), "meanwhile"); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, st := range []*varve.Store{st, ro} {
		if got := answers(t, st); got != want {
			t.Errorf("made again:\n%s\nwant\n%s", got, want)
		}
	}
	now, err := os.ReadDir(filepath.Join(dir, "memories"))
	if err != nil || len(now) != len(memories) {
		t.Errorf("%d memories, had %d, %v", len(now), len(memories), err)
	}
	sound(t, st)
}

// upgrading is a child that makes the files of a store again, says so in the middle, and waits.
func upgrading(ctx context.Context, _, dir string) error {
	written := 0
	st, err := varve.Open(ctx, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{WordsRows: 50, Inline: true, FS: wrap.New(vfs.OS(),
			func(op *wrap.Op, call func() error) error {
				err := call()
				if op.Kind == wrap.Rename && filepath.Ext(op.To) == ".seg" {
					if written++; written == 3 {
						fmt.Println("half")
						select {}
					}
				}
				return err
			})}}))
	if err != nil {
		return err
	}
	if err := st.Flush(ctx); err != nil {
		return err
	}
	return errors.New("the files were not made again")
}

// TestTermsKilledHalfway: a process that is killed while it makes the files again leaves the old ones, which
// answer; the
// next round makes them, and removes what it left.
func TestTermsKilledHalfway(t *testing.T) {
	t.Parallel()
	dir := firstTerms(t)
	before := files(t, dir)
	cmd, out, _ := storetest.StartTalking(t, "upgrading", dir)
	if line, err := out.ReadString('\n'); err != nil || strings.TrimSpace(line) != "half" {
		t.Fatal(line, err)
	}
	ro := with(t, dir, &varve.Options{ReadOnly: true})
	want := answers(t, ro)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	left := files(t, dir)
	if m := manifestOf(t, dir); m.Format != 1 || len(left) <= len(before) {
		t.Fatalf("%+v; %q, was %q", m, left, before)
	}
	st := open(t, dir)
	for _, st := range []*varve.Store{st, ro} {
		if got := answers(t, st); got != want {
			t.Errorf("killed:\n%s\nwant\n%s", got, want)
		}
	}
	flush(t, st)
	if m := manifestOf(t, dir); m.Format != 2 || m.Terms != 2 {
		t.Errorf("%+v", m)
	}
	for _, st := range []*varve.Store{st, ro} {
		if got := answers(t, st); got != want {
			t.Errorf("made again:\n%s\nwant\n%s", got, want)
		}
		if got := idsOf(t, st, "+C++"); got != "cpp" {
			t.Errorf("%q", got)
		}
	}
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("files %q", got)
	}
	sound(t, st)
}
