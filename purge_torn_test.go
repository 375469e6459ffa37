package varve

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// A torn tail, or a damaged segment, in quarantine may have a frame whose head is lost, and with it
// whose it is: no purge says that nothing of a memory is left until its user has removed that. What is
// whole is known: it is kept where it is of others.
func TestPurgeTornTail(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "s")
	st := openTest(t, dir, smallLog)
	secret := strings.Repeat("what nobody may know of monday, which is nobody's business; ", 200) // it is packed
	var at [3]uint64
	for i, m := range []Memory{{ID: "other", Content: "stays"}, {ID: "journal", Content: secret}, {ID: "third", Content: "stays too, after the journal"}} {
		m, err := st.Put(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		at[i] = m.Version
	}
	all, err := os.ReadFile(filepath.Join(dir, "wal", "00000001.wal"))
	if err != nil {
		t.Fatal(err)
	}
	geo := st.engine.Log.Past().Geometry
	headless := bytes.Clone(all[geo.Offset(at[0]):])
	if !bytes.Contains(headless[at[2]-at[0]:], []byte("journal")) {
		t.Fatal("the last does not mention it")
	}
	whole := bytes.Clone(headless[at[2]-at[0]:])
	lose := func(b []byte) []byte { // the head, and what names it
		clear(b[:segment.HeaderSize])
		return bytes.ReplaceAll(b, []byte("journal"), []byte("others'"))
	}
	headless = append(headless[:at[1]-at[0]], lose(headless[at[1]-at[0]:])...)
	damaged := bytes.Clone(all[:geo.Offset(at[2])])
	damaged = append(damaged[:geo.Offset(at[1])], lose(damaged[geo.Offset(at[1]):])...)

	torn := func(at uint64, b []byte) string {
		name := fmt.Sprintf("quarantine/torn-tail-%d.bin", at)
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	q := docfile.NewQuarantine(docfile.Layout{FS: vfs.OS(), Root: dir}, time.Now)
	piece, err := q.Bytes("00000001.wal", damaged, docfile.Note{Why: "it is damaged", From: "wal/00000001.wal"})
	if err != nil {
		t.Fatal(err)
	}
	left := []string{torn(at[0], headless), filepath.ToSlash(piece)}
	mention := torn(at[2], whole)
	r, err := st.Admin().Purge(ctx, "journal")
	var asked []string
	for _, err := range r.Left {
		var damaged *CorruptionError
		if !errors.As(err, &damaged) {
			t.Error(err)
			continue
		}
		asked = append(asked, damaged.Path)
	}
	if err == nil || len(asked) != len(left) {
		t.Fatalf("the user is asked for %q, not %q: %v", asked, left, err)
	}
	for _, name := range left {
		if !strings.Contains(err.Error(), name+": it may hold what was purged") {
			t.Errorf("%s is not named: %v", name, err)
		}
		if err := vfs.Wipe(vfs.OS(), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := st.Admin().Purge(ctx, "journal"); err != nil && !errors.Is(err, ErrNotFound) {
		t.Errorf("after that it is purged: %v, %+v", err, r)
	}
	if b, err := os.ReadFile(filepath.Join(dir, mention)); err != nil || !bytes.Equal(b, whole) {
		t.Errorf("what only mentions it is kept as it is: %v", err)
	}
}
