package words_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
)

// TestEveryBitOfFiles: whatever bit of the files is another one, answers are those of before, and the next
// round leaves files without damage.
func TestEveryBitOfFiles(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	memory := func(i int, text string) {
		t.Helper()
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: text, Timestamp: time.Unix(int64(i), 0), Metadata: map[string]any{"session_id": "s", "tags": []string{"t"}}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		memory(i, fmt.Sprint("boat number", i))
	}
	flush(t, st)
	memory(1, "another boat")
	flush(t, st)
	found := func(st *varve.Store) string {
		t.Helper()
		out := ""
		for _, q := range []string{"boat", "number2", "tag:t anoth*", `"another boat"`, "number1"} {
			hits, err := st.Search(t.Context(), varve.Query{Text: q})
			if err != nil {
				t.Fatalf("%q: %v", q, err)
			}
			for _, h := range hits {
				out += fmt.Sprintf("%s %x ", h.ID, h.Score)
			}
			out += "\n"
		}
		out += fmt.Sprint(listing(t, st, "-timestamp", 0, 0, nil))
		for s, err := range st.Sessions().All(t.Context()) {
			out += fmt.Sprint(s.ID, s.Memories, err)
		}
		n, err := st.Count(t.Context(), varve.WithTag("t"))
		return out + fmt.Sprint(n, err)
	}
	want := found(st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	names := files(t, dir)
	if len(names) != 5 { // two segments with states, the manifest
		t.Fatal(names)
	}
	was := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, folder, name))
		if err != nil {
			t.Fatal(err)
		}
		was[name] = b
	}
	cases, healed, step := 0, 0, proofs.Every(23)
	for _, name := range names {
		path, b := filepath.Join(dir, folder, name), was[name]
		for bit := step / 2 % 8; bit < len(b)*8; bit += step {
			bad := slices.Clone(b)
			bad[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("bit %d of %s", bit, name)
			st, err := varve.Open(t.Context(), dir, &varve.Options{ReadOnly: true})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if got := found(st); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			if cases++; cases%5 == 0 {
				copied := filepath.Join(t.TempDir(), "s")
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				healed++
				st := open(t, copied)
				if found(st) != want {
					t.Errorf("%s: open to write, other answers", what)
				}
				flush(t, st)
				for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
					if err != nil || f.Severity != varve.SeverityInfo { // the copy has other times
						t.Errorf("%s: after a round: %+v, %v", what, f, err)
					}
				}
				if got := found(st); got != want {
					t.Errorf("%s: after a round:\n%s\nwant\n%s", what, got, want)
				}
				if err := errors.Join(st.Close(), os.RemoveAll(copied)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d bits, %d healed", cases, healed)
}
