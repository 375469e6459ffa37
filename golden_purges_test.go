package varve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// The golden stores with purges, testdata/golden/purges, are made with
//
//	VARVE_GOLDEN=purges go test . -run '^TestMakeGoldenPurges$'
//
// like those of goldenRoot: once, and never again.
var goldenPurges = filepath.Join(fixture.GoldenRoot, "purges")

// goldenPurged returns up to which version the memories of such a store are purged, and which versions are redacted, by
// id.
func goldenPurged(t *testing.T, st *varve.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	table, err := storetest.Inner(st).Engine.Purged()
	fixture.Must(t, err)
	for _, id := range []string{"purged", "again", "kept", "note", "pending", "not flushed"} {
		if version := table.UpTo("m" + id); version != 0 {
			all[id] = fmt.Sprint("up to ", version)
		}
		for _, r := range table.Redactions("m" + id) {
			all[fmt.Sprint(id, " ", r.Version)] = fmt.Sprint("redacted, next ", r.Next, ", done ", r.Done)
		}
		for v, err := range st.History(context.Background(), id) {
			if errors.Is(err, varve.ErrNotFound) {
				break
			}
			fixture.Must(t, err)
			all[fmt.Sprint(id, "@", v.LSN)] = fmt.Sprintf("%d bytes, redacted %v at %s by %s", v.Size, v.Redacted,
				v.RedactedAt.Format(time.RFC3339), v.RedactedBy.Agent)
		}
	}
	return all
}

// goldenSecret is a text that is purged in all of them.
const goldenSecret = "a text that was purged, long enough to be known in any memory"

func TestMakeGoldenPurges(t *testing.T) {
	if os.Getenv("VARVE_GOLDEN") != "purges" {
		t.Skip("the golden stores with purges are made by VARVE_GOLDEN=purges, once")
	}
	fixture.Must(t, os.MkdirAll(goldenPurges, 0o755))
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	clock := fixture.ClockAt(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	o := func(seed byte) *varve.Options {
		system := vfs.System{SpillBytes: 1, Inline: true, Rand: rand.NewChaCha8([32]byte{seed})}
		return storetest.In(&varve.Options{Clock: clock.Now, NoBackground: true, SegmentSize: 64 << 10,
			Writer: &varve.Writer{Program: "golden", Host: "made-here", PID: 7, Agent: "one"}},
			storetest.Environment{System: system})
	}
	write := func(name string) {
		pack(t, dir, filepath.Join(goldenPurges, name))
		copied := filepath.Join(t.TempDir(), "s")
		fixture.Must(t, os.CopyFS(copied, os.DirFS(dir)))
		st, err := varve.Open(ctx, copied, &varve.Options{NoBackground: true, Clock: clock.Now})
		fixture.Must(t, err)
		b, err := json.MarshalIndent(goldenPurged(t, st), "", " ")
		fixture.Must(t, errors.Join(err, st.Close()))
		fixture.Must(t, os.WriteFile(filepath.Join(goldenPurges, name+".purges.json"), append(b, '\n'), 0o644))
	}
	st, err := varve.Open(ctx, dir, o(7))
	fixture.Must(t, err)
	put := func(id, content string) uint64 {
		t.Helper()
		clock.Add(time.Minute)
		m, err := st.Put(ctx, varve.Memory{ID: id, Content: content})
		fixture.Must(t, err)
		return m.Version
	}
	for i := range 6 {
		for _, id := range []string{"purged", "again", "kept"} {
			put(id, fmt.Sprint(id, " ", i, strings.Repeat(" and more", 400)))
		}
	}
	put("purged", goldenSecret)
	bad := put("note", goldenSecret+", redacted")
	put("note", "harmless")
	for _, id := range []string{"a", "b", "c"} {
		put(id, "about "+id)
	}
	_, err = st.Admin().Purge(ctx, "purged", "again")
	fixture.Must(t, err)
	put("again", "put again")
	_, err = st.Admin().PurgeVersion(ctx, "note", bad)
	fixture.Must(t, err)
	_, err = st.Admin().OverwriteRedacted(ctx)
	fixture.Must(t, err)
	fixture.Must(t, st.Close())
	write("closed")
	st, err = varve.Open(ctx, dir, o(8))
	fixture.Must(t, err)
	bad = put("pending", "to be redacted and not overwritten yet, when this is killed")
	put("pending", "harmless")
	_, err = st.Admin().PurgeVersion(ctx, "pending", bad)
	fixture.Must(t, err)
	put("not flushed", "only in the log")
	write("killed")
	fixture.Must(t, st.Close())
}

// TestGoldenPurges verifies that a store with purges, written by a former program, is read, verified and written by the
// current one, which knows what was purged.
func TestGoldenPurges(t *testing.T) {
	proofs.OneGoroutine(t)
	ctx := context.Background()
	for _, name := range []string{"closed", "killed"} {
		name = filepath.Join(goldenPurges, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir, want, purged := checkNoted(t, name, "purges", goldenPurged)
			st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
			fixture.Must(t, err)
			if f := storetest.Inner(st).Engine.Log().Features(); f&wal.FeaturePurges == 0 {
				t.Errorf("features %s", f)
			}
			for _, text := range []string{goldenSecret, goldenSecret + ", redacted"} {
				_, err := st.Put(ctx, varve.Memory{ID: "new", Content: text}, varve.RefusePurged())
				if !errors.Is(err, varve.ErrPurged) {
					t.Errorf("%q: %v", text, err)
				}
			}
			_, err = st.Put(ctx, varve.Memory{ID: "new", Content: "today"})
			fixture.Must(t, err)
			if got := goldenPurged(t, st); !maps.Equal(got, purged) {
				t.Errorf("%v, want %v", got, purged)
			}
			_, err = st.Admin().OverwriteRedacted(ctx)
			fixture.Must(t, err)
			if n := st.Admin().Stats().ToOverwrite; n != 0 {
				t.Errorf("%d to overwrite", n)
			}
			fixture.Must(t, st.Close())
			want["new"] = "today"
			storetest.SameTexts(t, "written", fixture.TextsOf(t, dir), want)
			fixture.Sound(t, dir)
		})
	}
}
