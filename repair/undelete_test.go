package repair_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// lostVersions returns a closed store in which a memory was deleted, where the lost part of the log has
// the version that was deleted, or the deletion as well.
func lostVersions(t *testing.T, deletionToo bool) (dir string, kept, deleted uint64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "s")
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	put := func(id, text string) uint64 {
		m, err := st.Put(t.Context(), varve.Memory{ID: id, Content: text + strings.Repeat(" x", 200)})
		if err != nil {
			t.Fatal(err)
		}
		return m.Version
	}
	for i := range 12 {
		put(fmt.Sprint("h", i), "first")
	}
	kept = put("h5", "second")
	from := put("h5", "third")
	to := put("other", "behind it")
	if err := st.Delete(t.Context(), "h5"); err != nil {
		t.Fatal(err)
	}
	last := put("last", "behind all")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if deletionToo {
		to = last
	}
	name := filepath.Join(dir, "wal", "00000001.wal")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := from%(1<<20) + 8; i < to%(1<<20)-64; i++ {
		b[i] ^= 0x55
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, kept, from
}

// Undelete restores only the version that was deleted, and no older one in its place.
func TestUndeleteBesideDamage(t *testing.T) {
	t.Parallel()
	for _, deletionToo := range []bool{false, true} {
		for _, repaired := range []bool{false, true} {
			t.Run(fmt.Sprintf("deletion lost %v repaired %v", deletionToo, repaired), func(t *testing.T) {
				t.Parallel()
				dir, kept, deleted := lostVersions(t, deletionToo)
				if repaired {
					apply(t, planOf(t, dir))
				}
				st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
				if err != nil {
					t.Fatal(err)
				}
				defer st.Close()
				m, err := st.Undelete(t.Context(), "h5")
				if err == nil {
					t.Fatalf("undelete restored %.20q, version %d; %d was deleted", m.Content, m.Version, deleted)
				}
				t.Log(err)
				if errors.Is(err, varve.ErrInvalid) {
					t.Errorf("a deleted memory is not deleted: %v", err)
				}
				if errors.Is(err, varve.ErrNotFound) != (repaired && !deletionToo) || !strings.Contains(err.Error(), fmt.Sprint(kept)) {
					t.Errorf("the message names no remedy: %v", err)
				}
				if !repaired {
					return // it is read only until then
				}
				if m, err := st.Revert(t.Context(), "h5", kept); err != nil || !strings.HasPrefix(m.Content, "second") {
					t.Errorf("reverted to %.20q: %v", m.Content, err)
				}
			})
		}
	}
}
