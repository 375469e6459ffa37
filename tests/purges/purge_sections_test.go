package purges

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// TestPurgeOfSections: of a purged note no word of a section is left, neither in the files of the view of sections nor
// where freed files were on the disk; nor is one of a version that was redacted. The other notes are found as before,
// by a process that has the old files open too.
func TestPurgeOfSections(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, redact := range []bool{false, true} {
		t.Run(fmt.Sprint("redact ", redact), func(t *testing.T) {
			t.Parallel()
			s := toldSecrets()
			s.add("a word of the first section", []byte("xylophonequark"))
			s.add("a word of the last section", []byte("quagmirewombat"))
			s.add("a word of a heading", []byte("zitherheading"))
			s.add("a word of the path", []byte("oboepath"))
			r := &fixture.Rig{Disk: crash.New()}
			o := r.Options(1)
			e := *storetest.Of(o)
			open := func() *varve.Store {
				t.Helper()
				st, err := varve.Open(ctx, "/s",
					storetest.In(&varve.Options{Clock: o.Clock, SegmentSize: o.SegmentSize, NoBackground: true,
						CacheBytes: -1}, e))
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			st, beside := open(), open()
			write := func(path, text string) varve.NoteInfo {
				t.Helper()
				n, err := st.Notes().Write(ctx, path, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			flush := func() {
				t.Helper()
				if err := st.Flush(ctx); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 100 {
				write(fmt.Sprintf("boats/%d.md", i), fmt.Sprintf("# Boat %d\n\nIts sails.\n\n## Crew\n\nsailor%d\n", i, i))
			}
			secret := "# xylophonequark\n" + strings.Repeat("line of text\n", 400) + "## zitherheading\nquagmirewombat\n"
			path := "oboepath.md"
			if redact {
				path = "plain.md"
				delete(s.parts, "a word of the path")
			}
			was := write(path, secret)
			flush()
			found := func(st *varve.Store, word string) int {
				t.Helper()
				hits, err := st.Search(ctx, varve.Query{Text: word, Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				return len(hits)
			}
			if a, b := found(st, "quagmirewombat"), found(beside, "xylophonequark"); a != 1 || b != 1 {
				t.Errorf("%d and %d hits", a, b)
			}
			if has := sectionsHave(t, e.System.FS, "xylophonequark"); !has {
				t.Error("the files of the view do not have the word, so that the test shows nothing")
			}
			r.Disk.KeepFreed()
			if redact {
				write(path, "# Nothing\n")
				if _, err := st.Notes().PurgeVersion(ctx, path, was.Version); err != nil {
					t.Fatal(err)
				}
				if _, err := st.Admin().OverwriteRedacted(ctx); err != nil {
					t.Fatal(err)
				}
			} else if _, err := st.Notes().Purge(ctx, path); err != nil {
				t.Fatal(err)
			}
			for _, st := range []*varve.Store{st, beside} {
				for word, want := range map[string]int{"xylophonequark": 0, "quagmirewombat": 0, "sails": 100, "sailor7": 1} {
					if n := found(st, word); n != want {
						t.Errorf("%s: %d hits, want %d", word, n, want)
					}
				}
			}
			if err := errors.Join(beside.Close(), st.Close()); err != nil {
				t.Error(err)
			}
			s.checkFreed(t, r.Disk, true)
			if left := s.traces(t, e.System.FS, "/s"); len(left) > 0 {
				t.Error(left[0])
			}
		})
	}
}

// sectionsHave reports whether a file of the view of sections has a word.
func sectionsHave(t *testing.T, fsys vfs.FS, word string) (has bool) {
	t.Helper()
	folder := filepath.Join("/s", filepath.FromSlash(places.Sections))
	names, err := fsys.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := vfs.ReadFile(fsys, filepath.Join(folder, name), 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		has = has || strings.Contains(string(b), word)
	}
	return has
}
