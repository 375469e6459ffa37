package backups

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	walpast "github.com/varve-db/varve/wal/past"
)

// lastCopies makes a store whose documents are in neither log nor archive: the memories m0 to m5 and the
// assembly a of m0, each with a unique content.
func lastCopies(t *testing.T, how string, c *fixture.Clock) (dir string, versions map[string]uint64) {
	t.Helper()
	ctx := context.Background()
	top := t.TempDir()
	from := filepath.Join(top, "from")
	st, err := varve.Open(ctx, from, &varve.Options{NoBackground: true, Clock: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		m := varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("only copy ", i)}
		if i == 5 {
			at := c.Now().Add(time.Hour)
			m.ExpiresAt = at
		}
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Assemblies().Put(ctx,
		varve.Assembly{ID: "a", Name: "only copy a", MemoryIDs: []string{"m0"}}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(top, "store")
	if how == "restore" {
		if _, err := st.Backup(ctx, filepath.Join(top, "backup"), varve.BackupOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	switch how {
	case "restore":
		if _, err := varve.Restore(ctx, filepath.Join(top, "backup"), dir, nil); err != nil {
			t.Fatal(err)
		}
	case "clone": // what git takes along
		for _, name := range []string{"memories", "assemblies", "config.json", ".gitignore"} {
			if err := fixture.TakeAlong(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	case "log gone":
		dir = from
		for _, name := range []string{"wal", "checkpoint"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true, Clock: c.Now})
	versions = map[string]uint64{}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		versions[m.ID] = m.Version
	}
	a, err := st.Assemblies().Get(ctx, "a")
	if err != nil || len(versions) != 6 {
		t.Fatalf("%d memories, %v", len(versions), err)
	}
	versions["a"] = a.Version
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, versions
}

// keeps checks that the version which was the present one is in the history of a document, and can be
// read.
func keeps(t *testing.T, st *varve.Store, id string, version uint64, content string) {
	t.Helper()
	ctx := context.Background()
	history, get := st.History, st.GetAt
	if id == "a" {
		history, get = st.Assemblies().History, st.Assemblies().GetAt
	}
	n := 0
	for v, err := range history(ctx, id) {
		if gap := (*varve.GapError)(nil); err != nil && !errors.As(err, &gap) {
			t.Errorf("%s: %v", id, err)
		}
		if v.LSN == version && bytes.Contains(v.Document, []byte(content)) {
			if n++; !v.Kept || v.Time.IsZero() {
				t.Errorf("%s: version %d: kept %v, of %v", id, version, v.Kept, v.Time)
			}
		}
	}
	v, err := get(ctx, id, version)
	if n != 1 || err != nil || !bytes.Contains(v.Document, []byte(content)) {
		t.Errorf("%s: version %d is %d times in its history; it reads as %q, %v", id, version, n, v.Document, err)
	}
}

// The last copy of a memory is only in its file if a store was restored or cloned, or has lost its log:
// whatever replaces or deletes it first copies it into the log.
func TestLastCopyIsKept(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"restore", "clone", "log gone"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			c := fixture.ClockAt(time.Unix(1_800_000_000, 0))
			dir, versions := lastCopies(t, how, c)
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Clock: c.Now})
			from := st.Admin().Stats().Durable
			if err := st.Delete(ctx, "m0"); err != nil { // the assembly changes along
				t.Fatal(err)
			}
			if _, err := st.Put(ctx, varve.Memory{ID: "m1", Content: "another"}); err != nil {
				t.Fatal(err)
			}
			if _, err := st.PutAll(ctx,
				slices.Values([]varve.Memory{{ID: "m2", Content: "another"}, {ID: "m3", Content: "another"}})); err != nil {
				t.Fatal(err)
			}
			c.Add(2 * time.Hour) // m5 has expired, and together with m4 makes room
			fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.AtLimit = 4, varve.AtLimitEvictOldest })
			if _, err := st.Put(ctx, varve.Memory{ID: "new", Content: "another"}); err != nil {
				t.Fatal(err)
			}
			if _, err := st.Get(ctx, "m4"); err == nil {
				t.Fatal("m4 was not evicted")
			}
			check := func() {
				t.Helper()
				for i := range 6 {
					id := fmt.Sprint("m", i)
					keeps(t, st, id, versions[id], fmt.Sprint("only copy ", i))
				}
				keeps(t, st, "a", versions["a"], "only copy a")
			}
			check()
			n := 0
			for ch, err := range st.Watch(ctx, from) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; strings.Contains(ch.Memory.Content, "only copy") {
					t.Errorf("a copy was told as a change: %+v", ch)
				}
				if ch.ID == "new" {
					break
				}
			}
			if n != 6 {
				t.Errorf("%d changes", n)
			}
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				if how == "log gone" && f.Kind == repair.BackupDamaged { // of the index, which belongs to the earlier log
					continue
				}
				t.Errorf("verify: %v, %v", f, err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			st = fixture.Open(t, dir, &varve.Options{NoBackground: true, Clock: c.Now})
			check()
			if n, err := st.Count(ctx); n != 4 || err != nil {
				t.Errorf("%d memories, %v", n, err)
			}
		})
	}
}

// A version that the log has needs no copy, and so the store no feature.
func TestNoCopyOfWhatTheLogHas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	for range 3 {
		if _, err := st.Put(ctx, varve.Memory{ID: "m", Content: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Delete(ctx, "m"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for v, err := range st.History(ctx, "m") {
		if n++; err != nil || v.Kept {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if f := storetest.Inner(st).Engine.Log().Features(); n != 4 || f&wal.FeatureKept != 0 {
		t.Errorf("%d versions, features %s", n, f)
	}
}

// After a purge no copy is left, including those of the assembly that had the memory.
func TestPurgeOfKeptCopies(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"restore", "clone"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			c := fixture.ClockAt(time.Unix(1_800_000_000, 0))
			dir, versions := lastCopies(t, how, c)
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Clock: c.Now})
			for _, id := range []string{"m0", "m1"} {
				if err := st.Delete(ctx, id); err != nil {
					t.Fatal(err)
				}
			}
			keeps(t, st, "m0", versions["m0"], "only copy 0")
			if _, err := st.Admin().Purge(ctx, "m0", "m2"); err != nil { // m2 still stands
				t.Fatal(err)
			}
			keeps(t, st, "m1", versions["m1"], "only copy 1")
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"only copy 0", "only copy 2", `"m0"`} { // the assembly named it
				for _, path := range filesWith(t, dir, secret) {
					t.Errorf("%q is in %s", secret, path)
				}
			}
			if len(filesWith(t, dir, "only copy 1")) == 0 {
				t.Error("what was not purged is gone, or is not found where it is")
			}
		})
	}
}

// A repair of a log with copies keeps them in the history. Documents that are deleted afterwards have
// their copy in the log that the repair began.
func TestRepairBesideKeptCopies(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"restore", "clone", "log gone"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			c := fixture.ClockAt(time.Unix(1_800_000_000, 0))
			dir, versions := lastCopies(t, how, c)
			o := &varve.Options{NoBackground: true, Clock: c.Now, StateDir: t.TempDir()}
			with := func(do func(st *varve.Store)) {
				t.Helper()
				st := fixture.Open(t, dir, o)
				do(st)
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
			}
			kept := func(ids ...int) {
				t.Helper()
				with(func(st *varve.Store) {
					for _, i := range ids {
						id := fmt.Sprint("m", i)
						keeps(t, st, id, versions[id], fmt.Sprint("only copy ", i))
					}
				})
			}
			with(func(st *varve.Store) {
				err := st.Delete(ctx, "m0")
				for _, m := range []varve.Memory{{ID: "m1", Content: "another"}, {ID: "hole", Content: "zeros in its frame"},
					{ID: "last", Content: "x"}} {
					if err == nil {
						_, err = st.Put(ctx, m)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			damaged := 0
			for _, path := range filesWith(t, filepath.Join(dir, "wal"), "zeros in its frame") {
				b, err := os.ReadFile(path)
				if err == nil {
					clear(b[bytes.Index(b, []byte("zeros in its frame")):][:5])
					err = os.WriteFile(path, b, 0o600)
				}
				if damaged++; err != nil {
					t.Fatal(err)
				}
			}
			if damaged != 1 {
				t.Fatalf("%d files of the log are damaged", damaged)
			}
			repaired := func() {
				t.Helper()
				plan, err := varve.PlanRepair(ctx, dir, o, varve.VerifyOptions{})
				if err == nil {
					_, err = plan.Apply(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			repaired()
			kept(0, 1)
			with(func(st *varve.Store) {
				if err := st.Delete(ctx, "m2"); err != nil {
					t.Fatal(err)
				}
			})
			repaired()
			kept(0, 1, 2)
		})
	}
}

// filesWith returns the files that contain some bytes, with copies in the archive inflated.
func filesWith(t *testing.T, dir, secret string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if plain, _, ok := walpast.InflateCopy(b); ok {
			b = plain
		}
		if bytes.Contains(b, []byte(secret)) {
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
