package purges

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// failedPurge leaves the state of a purge that failed after it had deleted.
func failedPurge(t *testing.T, st *varve.Store, id string) {
	t.Helper()
	if err := storetest.Inner(st).Engine.Log().Purges().Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	storetest.Inner(st).Engine.Log().Purges().Fail()
	storetest.Inner(st).Engine.Log().Purges().End()
}

// Rounds overwrite what they displace until the deletion of a failed purge is in the files, however much
// has to be put into files before it.
func TestPurgeFailedBehindBacklog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := toldSecrets("secret")
	r := &fixture.Rig{Disk: crash.New()}
	st, err := varve.Open(ctx, "/s", r.Options(1))
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "secret", Content: strings.Repeat(told, 200)})
	}
	if err == nil {
		err = st.Flush(ctx)
	}
	batch := func() {
		for i := 0; i < flush.PaceFiles+50 && err == nil; i++ {
			_, err = st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: "x"})
		}
	}
	if batch(); err != nil {
		t.Fatal(err)
	}
	r.Disk.KeepFreed()
	failedPurge(t, st, "secret")
	rounds := 0
	for ; storetest.Inner(st).Engine.Log().Purges().Displaced(); rounds++ {
		if rounds == 10 {
			t.Fatal("what is displaced is overwritten still after 10 rounds")
		}
		if _, did := storetest.Inner(st).Flusher.FlushBackground(flush.Unpaced(ctx)); !did {
			t.Fatal("no round, and what was displaced is not overwritten")
		}
	}
	if rounds < 2 || storetest.Inner(st).Engine.Log().Flushed() < storetest.Inner(st).Engine.Log().Durable() {
		t.Errorf("%d rounds; files as of %d of %d", rounds, storetest.Inner(st).Engine.Log().Flushed(),
			storetest.Inner(st).Engine.Log().Durable())
	}
	if batch(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Flush(ctx), st.Close()); err != nil {
		t.Fatal(err)
	}
	s.checkFreed(t, r.Disk, true)
}

// All processes know that a purge failed in one process, and for all it is over once any process has
// completed one.
func TestPurgeFailedElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := fixture.Open(t, dir, &varve.Options{NoBackground: true}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for _, id := range []string{"a", "b", "c"} {
		if _, err := one.Put(t.Context(), varve.Memory{ID: id, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	failedPurge(t, one, "a")
	if l := storetest.Inner(two).Engine.Log(); !l.Purges().Overwrites() || !l.Purges().Displaced() {
		t.Error("another process does not know of it")
	}
	if err := two.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := storetest.Inner(one).Engine.Log(); !l.Purges().Overwrites() || l.Purges().Displaced() {
		t.Errorf("after a round of another process: overwrites log and index: %v, documents: %v",
			l.Purges().Overwrites(), l.Purges().Displaced())
	}
	if _, err := two.Admin().Purge(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if l := storetest.Inner(one).Engine.Log(); l.Purges().Overwrites() || l.Purges().Displaced() {
		t.Error("it is not over after a purge of another process")
	}
}

// A round that began before a purge keeps nothing for it: the documents that the purge deletes are in a
// later round.
func TestPurgeAnnouncedAmidARound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	two := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	announce := false
	one := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if announce && op.Kind == wrap.Exchange {
				announce = false
				if err := storetest.Inner(two).Engine.Log().Purges().Begin(t.Context()); err != nil {
					t.Error(err)
				}
			}
			return call()
		}), Inline: true}}))
	put := func(content string) {
		for i := range 300 {
			if _, err := one.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: content}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("x")
	if err := one.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	put("y")
	announce = true
	if err := one.Flush(t.Context()); err != nil || announce {
		t.Fatal(err, announce)
	}
	files := 0
	if err := filepath.WalkDir(filepath.Join(dir, "tmp"), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files++
		}
		return err
	}); err != nil || files > 100 {
		t.Errorf("%d files are kept for a purge that had not begun, %v", files, err)
	}
	storetest.Inner(two).Engine.Log().Purges().End()
}

// A file that another program had open during a purge is overwritten once it is closed, even without
// another purge.
func TestPurgeOfAnOpenFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := toldSecrets("secret")
	r := &fixture.Rig{Disk: crash.New()}
	o := r.Options(1)
	st, err := varve.Open(ctx, "/s", o)
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "secret", Content: strings.Repeat(told, 20)})
	}
	if err = errors.Join(err, st.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	r.Disk.KeepFreed()
	editor, err := r.Disk.Process("editor").OpenFile("/s/memories/"+jsondoc.FileName("secret"), os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Admin().Purge(ctx, "secret"); !errors.Is(err, varve.ErrLocked) {
		t.Fatalf("a purge of what another program has open: %v", err)
	}
	if err := editor.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "other", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Flush(ctx), st.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := storetest.Of(o).System.FS.ReadDir("/s/tmp/parked")
	if err == nil && len(names) > 0 {
		t.Errorf("%q are left", names)
	}
	s.checkFreed(t, r.Disk, true)
}

// A purge that gives up before it has deleted leaves no record of an interrupted purge.
func TestPurgeGivenUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := &fixture.Rig{Disk: crash.New(), Err: errors.New("the disk does not answer")}
	st, err := varve.Open(ctx, "/s", r.Options(1))
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "x"})
	}
	if err = errors.Join(err, st.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	early := 0
	for k := 1; k < 80; k++ {
		r.Ops, r.DieAt = 0, k
		_, failed := st.Admin().Purge(ctx, "a")
		r.DieAt = 0
		_, err := st.Get(ctx, "a")
		if failed != nil && errors.Is(err, varve.ErrNotFound) {
			break // it had deleted
		}
		if failed == nil { // that operation does not fail, or is not needed
			_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "x"})
		} else {
			early++
		}
		if err = errors.Join(err, st.Flush(ctx)); err != nil {
			t.Fatal(err)
		}
		if storetest.Inner(st).Engine.Log().Purges().Overwrites() {
			t.Fatalf("operation %d failed, and log and index are overwritten still", k)
		}
	}
	if early < 5 {
		t.Errorf("%d were given up", early)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
