package notes

import (
	"errors"
	"slices"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// older returns the options of a program that does not know notes.
func older(readOnly bool) *varve.Options {
	return storetest.In(&varve.Options{NoBackground: true, ReadOnly: readOnly},
		storetest.Environment{System: vfs.System{Lacks: uint64(wal.FeatureNotes)}})
}

// TestBesideAnOlderProgram: while a program that does not know notes has the store open, no note is
// written, by a call or by the adoption of a file, and both programs write memories; the file stays.
// When it has closed the store, the first note is written, and from then on the older program can
// neither write nor read the store: it would treat the section of the index, the count in its metadata,
// and the times in adopted versions as damage.
func TestBesideAnOlderProgram(t *testing.T) {
	dir := t.TempDir()
	before, err := varve.Open(t.Context(), dir, older(false))
	must(t, err)
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, LockWait: 50 * time.Millisecond})
	must(t, err)
	defer st.Close()
	for i, s := range []*varve.Store{before, st, before} {
		_, err := s.Put(t.Context(), varve.Memory{ID: string(rune('a' + i)), Content: "x"})
		must(t, err)
		must(t, s.Flush(t.Context()))
	}
	var locked *varve.LockError
	if _, err := st.Notes().Write(t.Context(), "a.md", []byte("one")); !errors.As(err, &locked) {
		t.Fatalf("a note was written: %v", err)
	}
	if c, err := wal.ReadCheckpoint(vfs.OS(), dir); err != nil || c.Features&wal.FeatureNotes != 0 {
		t.Errorf("the features are %s, %v", c.Features, err)
	}
	clean(t, before)
	must(t, before.Close())
	write(t, st, "a.md", "one")
	must(t, st.Flush(t.Context()))
	save(t, at(dir, "a.md"), "two")
	if s := text(t, st, "a.md"); s != "two" {
		t.Errorf("%q", s)
	}
	must(t, st.Close())
	for _, readOnly := range []bool{false, true} {
		var lacks *varve.FeatureError
		s, err := varve.Open(t.Context(), dir, older(readOnly))
		if !errors.As(err, &lacks) || lacks.Readable || !slices.Equal(lacks.Lacks, []string{"notes"}) {
			t.Errorf("a program that does not know notes opens the store, read-only %v: %v", readOnly, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
	st = opened(t, dir)
	expect(t, st, map[string]string{"a.md": "two"})
	clean(t, st)
}
