package purges

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
	walpast "github.com/varve-db/varve/wal/past"
)

// A segment or a torn tail in quarantine that has entries of a purged memory loses these, and the
// damaged parts; the entries of others stay, and can still be read.
func TestPurgeKeepsOthersInPieces(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, fixture.SmallLog)
	secret := strings.Repeat("what the journal says of monday, which is nobody's business; ", 200) // it is packed
	var last uint64
	for i, m := range []varve.Memory{{ID: "b", Content: "stays"}, {ID: "journal", Content: "forget this"},
		{ID: "journal", Content: secret}, {ID: "c", Content: "stays too"}} {
		m, err := st.Put(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			last = m.Version
		}
	}
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	all, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	geo := storetest.Inner(st).Engine.Log().Past().Geometry
	tail := bytes.Clone(all[geo.Offset(last):])
	copy(tail[len(tail)-200:], `garbage, or {"id": "journal"`)
	q := docfile.NewQuarantine(docfile.Layout{FS: vfs.OS(), Root: dir}, time.Now)
	where, err := q.Bytes("00000001.wal", all, docfile.Note{Why: "it is damaged", From: "wal/00000001.wal"})
	if err != nil {
		t.Fatal(err)
	}
	piece, torn := filepath.Join(dir, where), filepath.Join(dir, "quarantine", fmt.Sprintf("torn-tail-%d.bin", last))
	if err := os.WriteFile(torn, tail, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := st.Admin().Purge(ctx, "journal"); err != nil {
		t.Fatal(r, err)
	}
	for name, has := range map[string][]string{piece: {"stays", "stays too"}, torn: {"stays too"}} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, text := range has {
			if !bytes.Contains(b, []byte(`"`+text+`"`)) {
				t.Errorf("%s lacks %q", name, text)
			}
		}
		if bytes.Contains(b, []byte("journal")) || bytes.Contains(b, []byte("garbage")) {
			t.Errorf("%s still has something of it", name)
		}
	}
	// What is left of the segment reads as a log.
	old := filepath.Join(t.TempDir(), "wal")
	if err := errors.Join(os.MkdirAll(old, 0o700),
		os.Rename(piece, filepath.Join(old, filepath.Base(segments[0])))); err != nil {
		t.Fatal(err)
	}
	past := &walpast.Log{FS: vfs.OS(), Dir: old, Geometry: geo}
	var keys []string
	for e, err := range past.Entries(ctx, wal.Mark{}, last+1<<14) {
		if err != nil {
			break
		}
		keys = append(keys, e.Key)
	}
	if fmt.Sprint(keys) != "[mb mc]" {
		t.Errorf("it reads as %v", keys)
	}
}
