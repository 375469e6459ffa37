package purges

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// remembers checks that a store knows memories as purged.
func remembers(t testing.TB, st *varve.Store, ids ...string) {
	t.Helper()
	table, err := storetest.Inner(st).Engine.Purged()
	fixture.Must(t, err)
	for _, id := range ids {
		if table.UpTo("m"+id) == 0 {
			t.Errorf("the store does not know that %s is purged", id)
		}
	}
}

func lasting() *varve.Options {
	return &varve.Options{NoBackground: true, SegmentSize: 64 << 10, Clock: time.Now}
}

func openLasting(t testing.TB, dir string) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, lasting())
	fixture.Must(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// held returns the ids of the memories of a store.
func held(t testing.TB, st *varve.Store) (ids []string) {
	t.Helper()
	for m, err := range st.Memories(t.Context()) {
		fixture.Must(t, err)
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

// A purged memory is in no store that is restored from a backup made before the purge, if the living
// store, or a backup made since, has the record: not its documents, not its versions, and not its bytes.
// A store that is restored from the backup of a restored store has the record too. A memory that was put
// again since is there.
func TestPurgeLasts(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	store, old := filepath.Join(dir, "s"), filepath.Join(dir, "old")
	s := toldSecrets("ada")
	st := openLasting(t, store)
	put := func(id, content string) {
		t.Helper()
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: content, Embedding: []float32{1, 2}})
		fixture.Must(t, err)
	}
	put("ada", strings.Repeat(told, 3))
	put("ada", strings.Repeat(told, 400))
	put("again", strings.Repeat(told, 3))
	put("other", "something else")
	scope := working.Scope{Session: "s1"}
	w, err := st.Working().Open(ctx, scope, nil)
	fixture.Must(t, err)
	fixture.Must(t, w.Set(ctx, "k", told))
	_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: told, MemoryIDs: []string{"other"}})
	fixture.Must(t, err)
	_, err = st.Backup(ctx, old, varve.BackupOptions{})
	fixture.Must(t, err)
	put("ada", told+"a third time") // in the log behind the backup
	_, err = st.Admin().Purge(ctx, "ada", "again")
	fixture.Must(t, err)
	_, err = st.Assemblies().Purge(ctx, "g")
	fixture.Must(t, err)
	_, err = st.Working().Purge(ctx, scope)
	fixture.Must(t, err)
	put("again", "harmless now")
	for i := range 100 { // no segment of the log has the entry anymore
		put("l", fmt.Sprint(i, strings.Repeat("later ", 500)))
	}
	fixture.Must(t, st.Admin().Compact(ctx))
	remembers(t, st, "ada", "again")
	fixture.Must(t, st.Close())

	check := func(to string, want ...string) {
		t.Helper()
		got := openLasting(t, to)
		if ids := held(t, got); !slices.Equal(ids, want) {
			t.Errorf("%s has %v, want %v", to, ids, want)
		}
		for v, err := range got.History(ctx, "ada") {
			if !errors.Is(err, varve.ErrNotFound) {
				t.Errorf("%s has version %d of it, %v", to, v.LSN, err)
			}
		}
		if _, err := got.Assemblies().Get(ctx, "g"); !errors.Is(err, varve.ErrNotFound) {
			t.Error("the assembly:", err)
		}
		remembers(t, got, "ada")
		storetest.AllWell(t, got.Admin().Verify(ctx, varve.VerifyOptions{}))
		fixture.Must(t, got.Close())
		if left := s.traces(t, vfs.OS(), to); len(left) > 0 {
			t.Errorf("%s has %s", to, left[0])
		}
	}
	to := filepath.Join(dir, "new")
	r, err := varve.Restore(ctx, old, to, &varve.RestoreOptions{Log: store, Options: lasting()})
	fixture.Must(t, err)
	if r.Purged != 3 { // ada, the assembly and the scope
		t.Errorf("%d left out, want 3", r.Purged)
	}
	check(to, "again", "l", "other")

	// A chain of restores, without the first store.
	second, third := filepath.Join(dir, "second"), filepath.Join(dir, "third")
	got := openLasting(t, to)
	_, err = got.Backup(ctx, second, varve.BackupOptions{})
	fixture.Must(t, err)
	fixture.Must(t, got.Close())
	_, err = varve.CheckBackup(ctx, second)
	fixture.Must(t, err)
	_, err = varve.Restore(ctx, second, third, &varve.RestoreOptions{Options: lasting()})
	fixture.Must(t, err)
	check(third, "again", "l", "other")

	// The backup alone cannot know, and with the store purged data may be requested.
	with := filepath.Join(dir, "with")
	_, err = varve.Restore(ctx, old, with, &varve.RestoreOptions{Options: lasting()})
	fixture.Must(t, err)
	got = openLasting(t, with)
	if ids := held(t, got); !slices.Contains(ids, "ada") {
		t.Error("the backup alone has", ids)
	}
}

// The record of a purge is kept in a backup that is older than the rewriting of the document.
func TestPurgeBeforeTheBackup(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	st := openLasting(t, filepath.Join(dir, "s"))
	for _, content := range []string{told, "", "new"} {
		if content == "" {
			_, err := st.Admin().Purge(ctx, "ada")
			fixture.Must(t, err)
			continue
		}
		_, err := st.Put(ctx, varve.Memory{ID: "ada", Content: content})
		fixture.Must(t, err)
	}
	_, err := st.Backup(ctx, filepath.Join(dir, "b"), varve.BackupOptions{})
	fixture.Must(t, err)
	fixture.Must(t, st.Close())
	for i, log := range []string{"", filepath.Join(dir, "s")} {
		to := filepath.Join(dir, fmt.Sprint("to", i))
		_, err := varve.Restore(ctx, filepath.Join(dir, "b"), to, &varve.RestoreOptions{Log: log, Options: lasting()})
		fixture.Must(t, err)
		if m, err := openLasting(t, to).Get(ctx, "ada"); err != nil || m.Content != "new" {
			t.Errorf("with log %q: %q, %v", log, m.Content, err)
		}
	}
}

// A purge is known when neither log nor archive has the entry anymore, also to the next process.
func TestPurgeOutlivesTheLog(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	st := openLasting(t, dir)
	c, none := st.Admin().Config(), int64(0)
	c.HistoryBytes = &none
	fixture.Must(t, st.Admin().SetConfig(c))
	_, err := st.Put(ctx, varve.Memory{ID: "ada", Content: told})
	fixture.Must(t, err)
	_, err = st.Admin().Purge(ctx, "ada")
	fixture.Must(t, err)
	for i := range 60 {
		_, err := st.Put(ctx, varve.Memory{ID: "l", Content: fmt.Sprint(i, strings.Repeat("later ", 900))})
		fixture.Must(t, err)
		if i%20 == 19 {
			fixture.Must(t, st.Admin().Compact(ctx))
		}
	}
	inner := storetest.Inner(st)
	first, err := inner.Engine.Log().Past().First(inner.Engine.Log().Durable())
	fixture.Must(t, err)
	table, err := inner.Engine.Purged()
	fixture.Must(t, err)
	for _, r := range table.All() {
		if r.Since >= first {
			t.Fatal("the log still has the entry")
		}
	}
	remembers(t, st, "ada")
	fixture.Must(t, st.Close())
	remembers(t, openLasting(t, dir), "ada")
}

// A damaged line of wal/purges is reported, and restored from the archive. Without the file a store
// still knows what log and archive have.
func TestPurgesFile(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	st := openLasting(t, dir)
	for _, id := range []string{"ada", "l"} {
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: told})
		fixture.Must(t, err)
		_, err = st.Admin().Purge(ctx, id)
		fixture.Must(t, err)
	}
	fixture.Must(t, st.Close())
	name := filepath.Join(dir, "wal", "purges")
	sound, err := os.ReadFile(name)
	fixture.Must(t, err)
	if bytes.Contains(sound, []byte("ada")) {
		t.Errorf("it has an id: %s", sound)
	}
	storetest.Rewrite(t, name, func(b []byte) []byte { b[30] ^= 1; return b })
	st = openLasting(t, dir)
	remembers(t, st, "ada", "l") // of the archive
	found := 0
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		fixture.Must(t, err)
		if f.Kind == repair.PurgesDamaged {
			found++
		}
	}
	if found != 1 {
		t.Errorf("verify found it %d times", found)
	}
	_, err = st.Put(ctx, varve.Memory{ID: "three", Content: told})
	fixture.Must(t, err)
	_, err = st.Admin().Purge(ctx, "three")
	fixture.Must(t, err)
	remembers(t, st, "ada", "l", "three")
	fixture.Must(t, st.Close())

	plan, err := varve.PlanRepair(ctx, dir, lasting(), varve.VerifyOptions{})
	fixture.Must(t, err)
	report, err := plan.Apply(ctx)
	fixture.Must(t, err)
	if len(report.Remaining) != 0 {
		t.Error(report.Remaining)
	}
	st = openLasting(t, dir)
	remembers(t, st, "ada", "l", "three")
	for f := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if f.Kind == repair.PurgesDamaged {
			t.Error("after the repair:", f)
		}
	}
	fixture.Must(t, st.Close())
	fixture.Must(t, os.Remove(name))
	st = openLasting(t, dir)
	remembers(t, st, "ada", "l", "three")
	fixture.Must(t, st.Close())
}

// A store without a purge has none of its files and features; a program that does not know them does not write to one
// with a purge, and reads it.
func TestPurgeFeature(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	features := func(st *varve.Store) wal.Features { return storetest.Inner(st).Engine.Log().Features() }
	st := openLasting(t, dir)
	_, err := st.Put(ctx, varve.Memory{ID: "ada", Content: told})
	fixture.Must(t, err)
	if features(st)&wal.FeaturePurges != 0 {
		t.Error("raised before the first purge")
	}
	_, err = st.Admin().Purge(ctx, "ada")
	fixture.Must(t, err)
	if features(st)&wal.FeaturePurges == 0 {
		t.Error("not raised")
	}
	fixture.Must(t, st.Close())
	older := wal.KnownFeatures &^ wal.FeaturePurges
	var lacks *varve.FeatureError
	if err := wal.FeaturePurges.Lacking(older, dir, false); !errors.As(err, &lacks) || !lacks.Readable {
		t.Error(err)
	}
}
