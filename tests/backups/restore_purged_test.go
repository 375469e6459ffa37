package backups

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/wal"
)

// TestRestoreBehindAPurge: a document that was purged between a backup and the moment is not in the
// restored store, whose state would never have existed. Documents that were deleted, have expired or
// were put again are as they were at the moment.
func TestRestoreBehindAPurge(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	store, backup := filepath.Join(dir, "s"), filepath.Join(dir, "backup")
	var ahead atomic.Int64
	options := func() *varve.Options {
		return &varve.Options{NoBackground: true,
			Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
	}
	st, err := varve.Open(ctx, store, options())
	fixture.Must(t, err)
	defer st.Close()
	put := func(id string) uint64 {
		t.Helper()
		m, err := st.Put(ctx, varve.Memory{ID: id, Content: "about " + id})
		fixture.Must(t, err)
		return m.Version
	}
	for _, id := range []string{"purged", "kept", "deleted before", "deleted behind", "again"} {
		put(id)
	}
	_, err = st.Put(ctx, varve.Memory{ID: "expired", Content: "it ends soon", ExpiresAt: time.Now().Add(time.Hour)})
	fixture.Must(t, err)
	_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: "g", MemoryIDs: []string{"kept"}})
	fixture.Must(t, err)
	_, err = st.Backup(ctx, backup, varve.BackupOptions{})
	fixture.Must(t, err)
	before := put("before the purge")
	fixture.Must(t, st.Delete(ctx, "deleted before"))
	_, err = st.Admin().Purge(ctx, "purged", "again")
	fixture.Must(t, err)
	_, err = st.Assemblies().Purge(ctx, "g")
	fixture.Must(t, err)
	put("again")
	behind := put("behind the purge")
	fixture.Must(t, st.Delete(ctx, "deleted behind"))
	ahead.Store(int64(2 * time.Hour)) // expired memories are in the files, although they are not visible
	put("newest")

	for _, c := range []struct {
		at     uint64
		with   bool
		purged int64
		want   map[string]bool
	}{
		{before, true, 0, map[string]bool{"purged": true, "kept": true, "deleted before": true, "deleted behind": true,
			"again": true, "before the purge": true}},
		{before, false, 3, map[string]bool{"kept": true, "deleted before": true, "deleted behind": true,
			"before the purge": true}},
		{behind, false, 2, map[string]bool{"kept": true, "deleted behind": true, "again": true, "before the purge": true,
			"behind the purge": true}},
		{0, false, 2, map[string]bool{"kept": true, "again": true, "before the purge": true, "behind the purge": true,
			"newest": true}},
	} {
		to := filepath.Join(dir, fmt.Sprint("at", c.at, c.with))
		r, err := varve.Restore(ctx, backup, to, &varve.RestoreOptions{Log: store, Version: c.at,
			WithPurged: c.with, Options: options()})
		fixture.Must(t, err)
		if r.Purged != c.purged {
			t.Errorf("at %d: %d left out, want %d", c.at, r.Purged, c.purged)
		}
		restored, err := varve.Open(ctx, to, options())
		fixture.Must(t, err)
		got := map[string]bool{}
		for m, err := range restored.Memories(ctx) {
			fixture.Must(t, err)
			got[m.ID] = true
		}
		if delete(got, "expired"); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("at %d: %v, want %v", c.at, got, c.want)
		}
		if _, err := restored.Assemblies().Get(ctx, "g"); errors.Is(err, varve.ErrNotFound) != (c.purged > 0) {
			t.Errorf("at %d: the assembly: %v", c.at, err)
		}
		fixture.Must(t, restored.Close())
	}
}

// TestRestoreBehindAnUnrecordedPurge is TestRestoreBehindAPurge with a purge by a program that did not
// record purges yet: it is recognized by the erased frames of the living log.
func TestRestoreBehindAnUnrecordedPurge(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	store, backup, to := filepath.Join(dir, "s"), filepath.Join(dir, "backup"), filepath.Join(dir, "new")
	o := &varve.Options{NoBackground: true}
	st, err := varve.Open(ctx, store, o)
	fixture.Must(t, err)
	defer st.Close()
	for _, id := range []string{"purged", "kept"} {
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: "about " + id})
		fixture.Must(t, err)
	}
	_, err = st.Backup(ctx, backup, varve.BackupOptions{})
	fixture.Must(t, err)
	fixture.Must(t, st.Delete(ctx, "purged"))
	inner := storetest.Inner(st)
	log := inner.Engine.Log()
	fixture.Must(t, log.Purges().Roll(ctx))
	held, err := log.LockFlush(ctx)
	fixture.Must(t, err)
	fixture.Must(t, inner.Flusher.FlushRound(ctx, held, flush.MergeAlways))
	c, err := log.Checkpoint()
	fixture.Must(t, err)
	fixture.Must(t, log.SetCheckpoint(held, c.Flushed, c.Spilled, inner.Flusher.FolderTimes()))
	done, err := log.Purges().Erase(ctx, held, func(_ wal.LSN, key string, _ []byte) bool { return key == "mpurged" })
	held.Unlock()
	if fixture.Must(t, err); done.Frames != 2 {
		t.Fatalf("%d frames were erased", done.Frames)
	}
	_, err = st.Put(ctx, varve.Memory{ID: "behind", Content: "behind it"})
	fixture.Must(t, err)
	r, err := varve.Restore(ctx, backup, to, &varve.RestoreOptions{Log: store, Options: o})
	if fixture.Must(t, err); r.Purged != 1 || r.Memories != 2 {
		t.Errorf("%+v", r)
	}
}
