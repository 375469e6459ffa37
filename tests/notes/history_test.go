package notes

import (
	"fmt"
	"slices"
	"testing"
)

// TestHistoryOfPath: the history of a path has all that was there, by version: a note that was deleted, the note that
// was renamed to it then, with what that was before, and one that followed. A purge of a version takes no version of
// another note with it.
func TestHistoryOfPath(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	ns := st.Notes()
	write(t, st, "b.md", "first at b")
	write(t, st, "a.md", "at a")
	write(t, st, "b.md", "second at b")
	must(t, ns.Delete(t.Context(), "b.md"))
	write(t, st, "a.md", "moved")
	_, err := ns.Rename(t.Context(), "a.md", "b.md")
	must(t, err)
	write(t, st, "b.md", "after")
	_, err = ns.Rename(t.Context(), "b.md", "c.md")
	must(t, err)
	write(t, st, "b.md", "a third note")
	must(t, ns.Delete(t.Context(), "b.md"))
	_, err = ns.Rename(t.Context(), "c.md", "b.md")
	must(t, err)
	list := func() (list []string) {
		last := uint64(0)
		for v, err := range ns.History(t.Context(), "b.md") {
			must(t, err)
			if v.LSN <= last {
				t.Errorf("version %d behind %d", v.LSN, last)
			}
			last = v.LSN
			is := string(v.Document)
			if v.Deleted {
				is = "deleted"
			}
			if v.Redacted {
				is = "redacted"
			}
			list = append(list, v.ID+" "+is)
		}
		return list
	}
	want := []string{"b.md first at b", "a.md at a", "b.md second at b", "b.md deleted", "a.md moved", "b.md moved",
		"b.md after", "b.md deleted", "c.md after", "b.md a third note", "b.md deleted", "b.md after"}
	for _, flushed := range []bool{false, true} {
		if flushed {
			must(t, st.Flush(t.Context()))
		}
		if has := list(); !slices.Equal(has, want) {
			t.Errorf("flushed %v: %q", flushed, has)
		}
	}
	n, err := ns.Read(t.Context(), "b.md")
	must(t, err)
	write(t, st, "b.md", "the end")
	_, err = ns.PurgeVersion(t.Context(), "b.md", n.Version)
	must(t, err)
	want = append(want, "b.md the end")
	for i, s := range want {
		if s[5:] == "after" {
			want[i] = s[:5] + "redacted"
		}
	}
	if has := list(); !slices.Equal(has, want) {
		t.Errorf("%q", has)
	}
	expect(t, st, map[string]string{"b.md": "the end"})
	clean(t, st)
}

// TestHistoryOfMany: the history of a path at which notes came and went has what each was there.
func TestHistoryOfMany(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	ns := st.Notes()
	var want []string
	for i := range 8 {
		s := fmt.Sprint("note ", i)
		from := "x.md"
		if i%2 == 1 {
			from = fmt.Sprint("from", i, ".md")
		}
		write(t, st, from, s)
		if from != "x.md" {
			_, err := ns.Rename(t.Context(), from, "x.md")
			must(t, err)
		}
		want = append(want, s, "") // its deletion
		must(t, ns.Delete(t.Context(), "x.md"))
	}
	write(t, st, "last.md", "last")
	_, err := ns.Rename(t.Context(), "last.md", "x.md")
	must(t, err)
	if has := versions(t, st, "x.md"); !slices.Equal(has, append(want, "last", "last")) {
		t.Errorf("%q", has)
	}
}
