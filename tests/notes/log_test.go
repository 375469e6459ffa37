package notes

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
)

// logged returns what a log yields, one line for each version: what, path, number of the note, size.
func logged(t testing.TB, log *varve.NoteLog, numbers map[string]int) string {
	t.Helper()
	var list []varve.NoteVersion
	for v, err := range log.Next(t.Context()) {
		must(t, err)
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b varve.NoteVersion) int { return cmp.Compare(a.LSN, b.LSN) })
	var b strings.Builder
	for _, v := range list {
		key := v.NoteID + v.CreatedAt.Format(time.RFC3339Nano)
		if numbers[key] == 0 {
			numbers[key] = len(numbers) + 1
		}
		fmt.Fprintf(&b, "%s %s %d", v.What, v.Path, numbers[key])
		if v.From != "" {
			fmt.Fprintf(&b, " from %s", v.From)
		}
		if v.Redacted {
			fmt.Fprint(&b, " redacted")
		} else if v.What != "deleted" {
			fmt.Fprintf(&b, " %d", v.Size)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestLog: the log of the notes has each version once, a rename as one, and tells the notes at a path apart; also after
// a flush, in a store that is opened again, and when the bytes of a redacted version are overwritten.
func TestLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "storage")
	st := opened(t, dir)
	ns, numbers := st.Notes(), map[string]int{}
	log := ns.Log()
	if got := logged(t, log, numbers); got != "" {
		t.Error(got)
	}
	first := write(t, st, "a", "1")
	write(t, st, "a", "22")
	want := "created a 1 1\nchanged a 1 2\n"
	if got := logged(t, log, numbers); got != want {
		t.Errorf("%s", got)
	}
	i, err := ns.Update(t.Context(), "a", "dir/b", nil)
	must(t, err)
	if i.Path != "dir/b" || i.ID != first.ID || !i.CreatedAt.Equal(first.CreatedAt) || i.Version <= first.Version {
		t.Errorf("%+v", i)
	}
	write(t, st, "a", "another")
	i, err = ns.Update(t.Context(), "dir/b", "c", []byte("333"), varve.IfHash(i.ContentHash))
	must(t, err)
	if i.Path != "c" || i.Size != 3 {
		t.Errorf("%+v", i)
	}
	must(t, ns.Delete(t.Context(), "c"))
	write(t, st, "c", "again")
	all := want + "changed dir/b 1 from a 2\ncreated a 2 7\nchanged c 1 from dir/b 3\ndeleted c 1\ncreated c 3 5\n"
	if got := want + logged(t, log, numbers); got != all {
		t.Errorf("%s", got)
	}
	same := func(what, want string) {
		t.Helper()
		if got := logged(t, st.Notes().Log(), numbers); got != want {
			t.Errorf("%s: got\n%swant\n%s", what, got, want)
		}
	}
	same("a new log", all)
	must(t, st.Flush(t.Context()))
	must(t, st.Close())
	st = opened(t, dir)
	same("after a flush", all)
	_, err = st.Notes().PurgeOneVersion(t.Context(), "a", first.Version)
	must(t, err)
	all = strings.Replace(all, "created a 1 1", "created a 1 redacted", 1)
	same("redacted", all)
	if at, _, is, err := st.Notes().Redaction("a", first.Version); err != nil || !is || at.IsZero() {
		t.Error(at, is, err)
	}
	if _, _, is, err := st.Notes().Redaction("a", i.Version); err != nil || is {
		t.Error(is, err)
	}
	_, err = st.Admin().OverwriteRedacted(t.Context())
	must(t, err)
	same("overwritten", all)
	clean(t, st)
}

// TestUpdate: an update of content and path is one commit, and refused as a whole.
func TestUpdate(t *testing.T) {
	t.Parallel()
	st := opened(t, filepath.Join(t.TempDir(), "storage"))
	ns := st.Notes()
	a := write(t, st, "a", "one")
	write(t, st, "d/e", "two")
	var conflict *varve.ConflictError
	var field *varve.FieldError
	_, err := ns.Update(t.Context(), "a", "d/e", []byte("x"))
	if !errors.As(err, &conflict) || conflict.Hash != "" {
		t.Error(err)
	}
	_, err = ns.Update(t.Context(), "a", "f", []byte("x"), varve.IfHash(strings.Repeat("0", 64)))
	if !errors.As(err, &conflict) || conflict.Hash == "" {
		t.Error(err)
	}
	for _, to := range []string{"d", "d/e/f", "a/b", "../x"} {
		if _, err := ns.Update(t.Context(), "a", to, []byte("x")); !errors.As(err, &field) || field.Field != "path" {
			t.Errorf("%s: %v", to, err)
		}
	}
	if _, err := ns.Update(t.Context(), "none", "", []byte("x")); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	i, err := ns.Update(t.Context(), "a", "", []byte("one"))
	must(t, err)
	if i.Version != a.Version {
		t.Error("an update without a change made a version")
	}
	if i, err = ns.Update(t.Context(), "a", "", []byte{}); err != nil || i.Size != 0 {
		t.Error(i, err)
	}
	expect(t, st, map[string]string{"a": "", "d/e": "two"})
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

// TestListAfter: pages of a listing are the listing, by notes and by folders, also where what ends a page is gone.
func TestListAfter(t *testing.T) {
	t.Parallel()
	st := opened(t, filepath.Join(t.TempDir(), "storage"))
	for _, path := range []string{"a", "b-c", "b.md", "b/1", "b/2", "b/3/x", "b0", "b~/1", "c/\U0010FFFFx", "c/d/e/f",
		"ü/1", "ü/2", "z"} {
		write(t, st, path, path)
	}
	for _, folder := range []string{"", "b", "c/d"} {
		for depth := range 4 {
			var want, got []string
			name := func(e varve.NoteEntry) string {
				if e.Folder {
					return e.Path + "/"
				}
				return e.Path
			}
			for e, err := range st.Notes().List(t.Context(), folder, depth) {
				must(t, err)
				want = append(want, name(e))
			}
			for after := ""; ; {
				more := false
				for e, err := range st.Notes().ListAfter(t.Context(), folder, depth, after) {
					must(t, err)
					got, after, more = append(got, name(e)), name(e), true
					break
				}
				if !more || len(got) > len(want) {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, %d: %q, want %q", folder, depth, got, want)
			}
		}
	}
	must(t, st.Notes().Delete(t.Context(), "b-c"))
	for e, err := range st.Notes().ListAfter(t.Context(), "", 1, "b-c") {
		must(t, err)
		if e.Path != "b.md" {
			t.Error(e.Path)
		}
		break
	}
}
