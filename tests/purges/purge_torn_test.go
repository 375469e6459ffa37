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
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/working"
)

// A torn tail, or a damaged segment, in quarantine may have a frame whose header is lost, and with it
// the key: no purge reports that nothing of a memory is left until the user has removed that file.
// Complete frames are known: those of other memories are kept.
func TestPurgeTornTail(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, fixture.SmallLog)
	secret := strings.Repeat("what nobody may know of monday, which is nobody's business; ", 200) // it is packed
	var at [3]uint64
	for i, m := range []varve.Memory{{ID: "other", Content: "stays"}, {ID: "journal", Content: secret},
		{ID: "third", Content: "stays too, after the journal"}} {
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
	geo := storetest.Inner(st).Engine.Log().Past().Geometry
	headless := bytes.Clone(all[geo.Offset(at[0]):])
	if !bytes.Contains(headless[at[2]-at[0]:], []byte("journal")) {
		t.Fatal("the last does not mention it")
	}
	whole := bytes.Clone(headless[at[2]-at[0]:])
	lose := func(b []byte) []byte { // the header, and the key
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
		var damaged *varve.CorruptionError
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
		if !strings.Contains(err.Error(), name+": the file may contain purged data") {
			t.Errorf("%s is not named: %v", name, err)
		}
		if err := vfs.Wipe(vfs.OS(), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := st.Admin().Purge(ctx, "journal"); err != nil && !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("after that it is purged: %v, %+v", err, r)
	}
	if b, err := os.ReadFile(filepath.Join(dir, mention)); err != nil || !bytes.Equal(b, whole) {
		t.Errorf("what only mentions it is kept as it is: %v", err)
	}
}

// What happens to a piece of the log in quarantine that has, or may have, data of a purged memory.
func TestPurgePieces(t *testing.T) {
	t.Parallel()
	const asked, kept, reduced, gone = "asked", "kept", "reduced", "gone"
	memories := []varve.Memory{
		{ID: "other", Content: "only copy, see memories/journal.json",
			Metadata: map[string]any{"id": "journal", "assembly_id": "project", "scope": "session:s1"}},
		{ID: "journal", Content: "forget this of monday"},
		{ID: "third", Content: "third only"},
	}
	scope, err := working.ParseScope("session:s1")
	if err != nil {
		t.Fatal(err)
	}
	memory := func(st *varve.Store) (*varve.PurgeReport, error) { return st.Admin().Purge(t.Context(), "journal") }
	for name, c := range map[string]struct {
		piece func(all []byte, geo segment.Geometry, at [4]uint64) []byte // of the log
		tail  bool                                                        // a torn tail, and no segment
		name  string                                                      // of the file, other than it would have
		purge func(st *varve.Store) (*varve.PurgeReport, error)
		is    string
	}{
		"others' that mention it": {func(all []byte, geo segment.Geometry,
			at [4]uint64) []byte {
			return all[:geo.Offset(at[1])]
		}, false, "", memory, kept},
		"a tail of others' that mention it": {func(all []byte, geo segment.Geometry,
			at [4]uint64) []byte {
			return all[:geo.Offset(at[1])]
		}, true, "", memory, kept},
		"an assembly of that name": {func(all []byte, geo segment.Geometry,
			at [4]uint64) []byte {
			return all[:geo.Offset(at[1])]
		}, false, "",
			func(st *varve.Store) (*varve.PurgeReport, error) {
				return st.Assemblies().Purge(t.Context(), "project")
			}, kept},
		"a scope of that name": {func(all []byte, geo segment.Geometry,
			at [4]uint64) []byte {
			return all[:geo.Offset(at[1])]
		}, false, "",
			func(st *varve.Store) (*varve.PurgeReport, error) { return st.Working().Purge(t.Context(), scope) }, kept},
		"both":         {func(all []byte, _ segment.Geometry, _ [4]uint64) []byte { return all }, false, "", memory, reduced},
		"both, a tail": {func(all []byte, _ segment.Geometry, _ [4]uint64) []byte { return all }, true, "", memory, reduced},
		"its own": {func(all []byte, geo segment.Geometry, at [4]uint64) []byte {
			return append(bytes.Clone(all[:geo.Offset(at[0])]),
				append(make([]byte, at[1]-at[0]), all[geo.Offset(at[1]):geo.Offset(at[2])]...)...)
		}, false, "", memory, gone},
		"a start that is damaged": {func(all []byte, _ segment.Geometry, _ [4]uint64) []byte {
			b := bytes.Clone(all)
			b[70] ^= 1
			return b
		}, false, "", memory, reduced},
		"a start that is damaged, and a head": {func(all []byte, geo segment.Geometry, at [4]uint64) []byte {
			b := bytes.ReplaceAll(all, []byte("journal"), []byte("others'"))
			b[70] ^= 1
			return b
		}, false, "", memory, asked},
		"a deletion whose zeros were trimmed": {func(all []byte, geo segment.Geometry, at [4]uint64) []byte {
			return append(bytes.Clone(all[:geo.Offset(at[0])]),
				append(make([]byte, at[3]-at[0]), bytes.TrimRight(all[geo.Offset(at[3]):], "\x00")...)...)
		}, true, "", memory, kept},
		"a log with other segments": {func(all []byte, geo segment.Geometry, at [4]uint64) []byte {
			other := geo
			other.Size *= 4
			b := bytes.Clone(all[:geo.Offset(at[0])])
			for _, at := range at[:3] {
				h, err := geo.ParseHeader(all[geo.Offset(at):], at)
				if err != nil {
					t.Fatal(err)
				}
				payload := all[geo.Offset(at)+segment.HeaderSize:][:h.Length]
				b = other.AppendFrame(b, &h, string(payload[:h.KeyLen]), payload[h.KeyLen:])
			}
			return b
		}, true, "", memory, asked},
		"one that a killed purge takes away": {func(all []byte, geo segment.Geometry, at [4]uint64) []byte {
			return bytes.ReplaceAll(all, []byte("journal"), []byte("others'"))
		}, true, "torn-tail-8.bin.purged", memory, gone},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s")
			st := fixture.Open(t, dir, fixture.SmallLog)
			var at [4]uint64
			for i, m := range memories {
				m, err := st.Put(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				at[i] = m.Version
			}
			at[3] = storetest.Inner(st).Engine.Log().Durable()
			if err := st.Delete(t.Context(), "third"); err != nil {
				t.Fatal(err)
			}
			all, err := os.ReadFile(filepath.Join(dir, "wal", "00000001.wal"))
			if err != nil {
				t.Fatal(err)
			}
			geo := storetest.Inner(st).Engine.Log().Past().Geometry
			all = all[:geo.Offset(storetest.Inner(st).Engine.Log().Durable())]
			b := c.piece(all, geo, at)
			rel := c.name
			if c.tail {
				b = b[geo.Offset(at[0]):]
				if rel == "" {
					rel = fmt.Sprintf("torn-tail-%d.bin", at[0])
				}
				rel = filepath.Join("quarantine", rel)
				if err := errors.Join(os.MkdirAll(filepath.Join(dir, "quarantine"), 0o700),
					os.WriteFile(filepath.Join(dir, rel), b, 0o600)); err != nil {
					t.Fatal(err)
				}
			} else {
				q := docfile.NewQuarantine(docfile.Layout{FS: vfs.OS(), Root: dir}, time.Now)
				if rel, err = q.Bytes("00000001.wal", b, docfile.Note{Why: "it is damaged", From: "wal/00000001.wal"}); err != nil {
					t.Fatal(err)
				}
			}
			r, err := c.purge(st)
			is := kept
			switch now, rerr := os.ReadFile(filepath.Join(dir, rel)); {
			case errors.Is(rerr, os.ErrNotExist):
				is = gone
			case rerr != nil:
				t.Fatal(rerr)
			case len(r.Left) > 0 && bytes.Equal(now, b):
				is = asked
			case !bytes.Equal(now, b):
				is = reduced
				if !bytes.Contains(now, []byte("only copy")) || !bytes.Contains(now, []byte("third only")) ||
					bytes.Contains(now, []byte("forget")) {
					t.Errorf("what is left is %q", now)
				}
			}
			if is != c.is || is != asked && err != nil && !errors.Is(err, varve.ErrNotFound) {
				t.Errorf("it is %s, and should be %s: %v, left %v", is, c.is, err, r.Left)
			}
		})
	}
}

// purgeTails purges as a user who does not need the torn tails that a purge names: a loss of power may
// leave some whose frames have unknown keys.
func purgeTails(ctx context.Context, st *varve.Store, ids ...string) error {
	for {
		_, err := st.Admin().Purge(ctx, ids...)
		var tail *varve.CorruptionError
		if errors.Is(err, varve.ErrNotFound) {
			return nil
		}
		if !errors.As(err, &tail) || !strings.Contains(tail.Path, "-torn-tail-") {
			return err
		}
		path := filepath.Join(storetest.Inner(st).Engine.Env().Dir, filepath.FromSlash(tail.Path))
		if err := errors.Join(vfs.Wipe(storetest.Inner(st).Engine.Env().FS, path),
			storetest.Inner(st).Engine.Env().FS.SyncDir(filepath.Dir(path))); err != nil {
			return err
		}
	}
}
