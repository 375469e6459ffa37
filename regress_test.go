package varve_test

// Each of these was a bug, found by reading; each case fails when its fix is removed.
//
//	go test . ./tests/backups ./tests/edits -run TestRegress        (some need -race to see it)

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// killMyself ends this process as kill -9 does.
func killMyself() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// TestRegressPutAsyncOrder: of two PutAsync of one id by one goroutine, the first could win.
func TestRegressPutAsyncOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, filepath.Join(t.TempDir(), "s"), nil)
	wrong := 0
	for i := range 200 {
		id := fmt.Sprint("k", i)
		a := st.PutAsync(varve.Memory{ID: id, Content: "first"})
		b := st.PutAsync(varve.Memory{ID: id, Content: "second"})
		if _, err := a.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if m, err := st.Get(ctx, id); err != nil || m.Content != "second" {
			wrong++
		}
	}
	if wrong > 0 {
		t.Fatalf("%d of 200 times the earlier PutAsync overwrote the later one", wrong)
	}
}

// TestRegressPutAsyncAndClose: Close is documented to wait for PutAsync: it did, and refused them.
func TestRegressPutAsyncAndClose(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, err := varve.Open(ctx, filepath.Join(t.TempDir(), "s"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []*varve.Pending
	for i := range 500 {
		list = append(list, st.PutAsync(varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}))
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range list {
		if _, err := p.Wait(ctx); errors.Is(err, varve.ErrClosed) {
			n++
		}
	}
	if n > 0 {
		t.Fatalf("%d of 500 that were accepted before Close were not written", n)
	}
}

// TestRegressOpenNewTogether: several processes open a folder for the first time at once.
func TestRegressOpenNewTogether(t *testing.T) {
	t.Parallel()
	bad := map[string]int{}
	var mu sync.Mutex
	for range 30 {
		dir := filepath.Join(t.TempDir(), "s")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				st, err := varve.Open(context.Background(), dir, nil)
				if err != nil {
					mu.Lock()
					bad[strings.ReplaceAll(err.Error(), dir, "DIR")]++
					mu.Unlock()
					return
				}
				st.Close()
			})
		}
		wg.Wait()
	}
	if len(bad) > 0 {
		t.Fatalf("%v", bad)
	}
}

// TestRegressRecreatedIsTakenForAnEdit: put and flushed; deleted and put again before the next round: the store's own
// file was set aside as an edit by hand, with the deleted content.
func TestRegressRecreatedIsTakenForAnEdit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for i := range 1500 { // an index above 256 KiB, so that not every round writes it
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	st.Put(ctx, varve.Memory{ID: "x", Content: "secret"})
	if err := storetest.Inner(st).Flusher.Flush(ctx, flush.MergeWhenDue); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	st.Put(ctx, varve.Memory{ID: "x", Content: "other"})
	if err := storetest.Inner(st).Flusher.Flush(ctx, flush.MergeWhenDue); err != nil {
		t.Fatal(err)
	}
	if q := fixture.Quarantined(t, dir); len(q) > 0 || st.Admin().Stats().Edits > 0 {
		t.Fatalf("nobody edited anything, and yet: %v", q)
	}
}

// TestRegressHotKeyIsTakenForAnEdit: a memory that is written all the time while rounds run.
func TestRegressHotKeyIsTakenForAnEdit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	// As many puts as may run during a flush on a disk: without a bound, each flush reads thousands if an fsync takes
	// no time.
	puts := make(chan struct{}, 64)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			i := 0
			for range puts {
				i++
				if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("hot", i%2), Content: fmt.Sprint("v", w, i)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 600 / proofs.Every(1) {
		for len(puts) < cap(puts) {
			puts <- struct{}{}
		}
		if err := storetest.Inner(st).Flusher.Flush(ctx, flush.MergeWhenDue); err != nil {
			t.Error(err)
			break
		}
	}
	close(puts)
	wg.Wait()
	if q := fixture.Quarantined(t, dir); len(q) > 0 {
		t.Fatalf("nobody edited anything, and yet %d: %v", len(q), q[:1])
	}
}

// TestRegressStateAtForgetsADelete: the index as of a moment between a delete and a new put of the same id.
func TestRegressStateAtForgetsADelete(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, filepath.Join(t.TempDir(), "s"), &varve.Options{NoBackground: true})
	st.Put(ctx, varve.Memory{ID: "x", Content: "1"})
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	to := storetest.Inner(st).Engine.Log().AppliedMark()
	st.Put(ctx, varve.Memory{ID: "x", Content: "2"})
	list, _, err := storetest.Inner(st).Engine.StateAt(ctx, storetest.Inner(st).Engine.State().From(), to.LSN)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || !list[0].Deleted {
		t.Fatalf("at %d x was deleted; the index written for it says %+v, and keeps the old line (a later replay counts x "+
			"twice)", to.LSN, list)
	}
}

// TestRegressIndexRotIsNeverHealed: a block of memory_index.json is damaged; everything in it is in the files.
func TestRegressIndexRotIsNeverHealed(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("k%04d", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "memory_index.json"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	f.ReadAt(b, 100_000)
	b[0] ^= 1
	f.WriteAt(b, 100_000)
	f.Close()
	var last []string
	for range 3 { // several opens in a row
		last = nil
		st, err := varve.Open(ctx, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			if _, err := st.Get(ctx, fmt.Sprintf("k%04d", i)); err != nil {
				last = append(last, err.Error())
			}
		}
		if _, err := st.Put(ctx, varve.Memory{ID: "new", Content: "y"}); err != nil {
			last = append(last, "put: "+err.Error())
		}
		if err := st.Flush(ctx); err != nil {
			last = append(last, "flush: "+err.Error())
		}
		if err := st.Close(); err != nil {
			last = append(last, "close: "+err.Error())
		}
	}
	if len(last) > 0 {
		t.Fatalf("the third open still has %d errors; the first: %s; the last: %s", len(last), last[0], last[len(last)-1])
	}
}

func failing(fail func(op *wrap.Op) error) vfs.System {
	return vfs.System{FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if err := fail(op); err != nil {
			return err
		}
		return call()
	})}
}

// TestRegressRebuildTakesAPassingErrorForAbsence: the index is missing, and while it is rebuilt from the files, one of
// them (or the folder) cannot be read for a moment: EIO, EMFILE.
func TestRegressRebuildTakesAPassingErrorForAbsence(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"file", "folder"} {
		t.Run(what, func(t *testing.T) {
			ctx := context.Background()
			dir := filepath.Join(t.TempDir(), "s")
			st, err := varve.Open(ctx, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("k%d", i), Content: "x"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(dir, "memory_index.json"))
			st, err = varve.Open(ctx, dir,
				storetest.In(&varve.Options{}, storetest.Environment{System: failing(func(op *wrap.Op) error {
					if what == "file" && op.Kind == wrap.Open && strings.HasSuffix(op.Path, "k3.json") ||
						what == "folder" && op.Kind == wrap.ReadDir && strings.HasSuffix(op.Path, "memories") {
						return &os.PathError{Op: "open", Path: op.Path, Err: syscall.EMFILE}
					}
					return nil
				})}))
			if err != nil {
				t.Logf("refused: %v", err)
			} else if err := st.Close(); err != nil {
				t.Logf("close: %v", err)
			}
			st = fixture.Open(t, dir, nil) // the error has passed
			n, err := st.Count(ctx)
			if err != nil || n != 10 {
				t.Fatalf("%d of 10 memories are left (%v)", n, err)
			}
		})
	}
}

// TestRegressShortSessionsNeverReleaseTheLog: one open and close per change, as with a command line: nothing was ever
// released.
func TestRegressShortSessionsNeverReleaseTheLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	for i := range 40 {
		st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprint("k", i%3), Content: fmt.Sprint(i, fixture.RandomText(24<<10))}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wals, _ := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if len(wals) > 4 {
		t.Fatalf("%d segments are kept, spilled lies in the last", len(wals))
	}
}

// TestRegressDamagedStartLosesWhatIsNotFlushed: one flipped bit in the first block of the only segment lost the whole
// store.
func TestRegressDamagedStartLosesWhatIsNotFlushed(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("VARVE_KILLED"); dir != "" {
		st, err := varve.Open(context.Background(), dir, &varve.Options{NoBackground: true})
		if err != nil {
			t.Fatal(err)
		}
		st.Put(context.Background(), varve.Memory{ID: "x", Content: "acknowledged"})
		if os.Getenv("VARVE_FLUSH") != "" {
			st.Flush(context.Background())
		}
		killMyself()
	}
	dir := filepath.Join(t.TempDir(), "s")
	c := exec.Command(os.Args[0], "-test.run=TestRegressDamagedStartLosesWhatIsNotFlushed")
	c.Env = append(os.Environ(), "VARVE_KILLED="+dir)
	c.Run()
	f, err := os.OpenFile(filepath.Join(dir, "wal", "00000001.wal"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	f.ReadAt(b, 20)
	b[0] ^= 1
	f.WriteAt(b, 20)
	f.Close()
	st, err := varve.Open(context.Background(), dir, nil)
	if err != nil {
		return // an error is right, too
	}
	defer st.Close()
	if _, err := st.Get(context.Background(), "x"); err != nil {
		t.Fatalf("%v; report: created %v, damage %v", err, st.Admin().OpenReport().Created, st.Admin().OpenReport().Damage)
	}
}

// TestRegressTempOfTheKilledStays: after a process was killed while idle, tmp/<token> stayed forever.
func TestRegressTempOfTheKilledStays(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	for range 5 {
		c := exec.Command(os.Args[0], "-test.run=TestRegressDamagedStartLosesWhatIsNotFlushed")
		c.Env = append(os.Environ(), "VARVE_KILLED="+dir, "VARVE_FLUSH=1")
		c.Run()
	}
	st, err := varve.Open(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	st.Put(context.Background(), varve.Memory{ID: "y", Content: "z"})
	st.Flush(context.Background())
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "tmp", "*"))
	if len(left) > 0 {
		t.Fatalf("%d folders of killed processes are left in tmp/", len(left))
	}
}

// TestRegressOldEditOverNewVersion, docs/failures.md row 74: an editor saves the version that it opened an hour ago.
func TestRegressOldEditOverNewVersion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, CacheBytes: -1})
	st.Put(ctx, varve.Memory{ID: "x", Content: "one"})
	st.Flush(ctx)
	name := filepath.Join(dir, "memories", "x.json")
	opened, _ := os.ReadFile(name)
	st.Put(ctx, varve.Memory{ID: "x", Content: "two, acknowledged"})
	st.Flush(ctx)
	if err := os.WriteFile(name, []byte(strings.Replace(string(opened), "one", "one, edited", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := st.Get(ctx, "x")
	if err != nil || m.Content != "two, acknowledged" {
		t.Fatalf("the newer version gave way to an edit of an older one: %q %v; set aside: %v", m.Content, err,
			fixture.Quarantined(t, dir))
	}
}

// TestRegressFailedFlushRace, for -race: a flush that fails in the background, and an explicit one.
func TestRegressFailedFlushRace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	var bad atomic.Bool
	st, err := varve.Open(ctx, dir,
		storetest.In(&varve.Options{}, storetest.Environment{System: failing(func(op *wrap.Op) error {
			if bad.Load() && op.Kind == wrap.Create && strings.Contains(op.Path, "/s/tmp/") {
				return &os.PathError{Op: "open", Path: op.Path, Err: syscall.EIO}
			}
			return nil
		})}))
	if err != nil {
		t.Fatal(err)
	}
	bad.Store(true)
	for i := range 100 {
		st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"})
		st.Flush(ctx)
	}
	st.Close()
}

// TestRegressDamageBelowFlushedServesOldVersions: damage in the log below flushed; the files are all right, and newer.
func TestRegressDamageBelowFlushedServesOldVersions(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	if dir := os.Getenv("REVIEW_DAMAGE"); dir != "" {
		ctx := context.Background()
		st, _ := varve.Open(ctx, dir,
			storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{SpillBytes: 1 << 30}}))
		for i := range 1500 {
			st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"})
		}
		st.Flush(ctx)
		st.Put(ctx, varve.Memory{ID: "x", Content: "one"})
		m, _ := st.Put(ctx, varve.Memory{ID: "y", Content: "between"})
		st.Put(ctx, varve.Memory{ID: "x", Content: "two"})
		st.Put(ctx, varve.Memory{ID: "z", Content: "three"})
		storetest.Inner(st).Flusher.Flush(ctx, flush.MergeWhenDue) // all four are durable in their files
		os.WriteFile(dir+".at", []byte(fmt.Sprint(m.Version)), 0o600)
		killMyself()
	}
	dir := filepath.Join(t.TempDir(), "s")
	c := exec.Command(os.Args[0], "-test.run=TestRegressDamageBelowFlushedServesOldVersions")
	c.Env = append(os.Environ(), "REVIEW_DAMAGE="+dir)
	c.Run()
	var at int64
	b, _ := os.ReadFile(dir + ".at")
	fmt.Sscan(string(b), &at)
	f, err := os.OpenFile(filepath.Join(dir, "wal", "00000001.wal"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte{0xff}, at%(64<<20)+70)
	f.Close()
	st, err := varve.Open(context.Background(), dir, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer st.Close()
	ctx := context.Background()
	x, xerr := st.Get(ctx, "x")
	y, yerr := st.Get(ctx, "y")
	z, zerr := st.Get(ctx, "z")
	if x.Content != "two" || y.Content != "between" || z.Content != "three" {
		t.Fatalf("x %q %v\ny %q %v\nz %q %v\ndamage %v", x.Content, xerr, y.Content, yerr, z.Content, zerr,
			st.Admin().OpenReport().Damage)
	}
}

// TestRegressIndexAheadOfTheLog, docs/failures.md row 70: wal/ and checkpoint are restored from a copy, and the index
// is newer and has the same UUID: it covers positions that the log issues again.
func TestRegressIndexAheadOfTheLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	session := func(from, to int, size int) {
		st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < to; i++ {
			if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: strings.Repeat("x", size)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	session(0, 10, 100)
	if out, err := exec.Command("cp", "-r", filepath.Join(dir, "wal"), filepath.Join(dir, "checkpoint"),
		filepath.Dir(dir)).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	session(10, 100, 1000)
	os.RemoveAll(filepath.Join(dir, "wal"))
	for _, n := range []string{"wal", "checkpoint"} {
		if err := exec.Command("cp", "-r", filepath.Join(filepath.Dir(dir), n), dir).Run(); err != nil {
			t.Fatal(err)
		}
	}
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatalf("it opens, with an index made again: %v", err)
	}
	_, err = st.Put(ctx, varve.Memory{ID: "new", Content: "acknowledged"})
	if err != nil {
		t.Fatalf("it opens, with an index made again: %v", err)
	}
	if _, err := st.Get(ctx, "new"); err != nil {
		t.Errorf("a Put that returned nil: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	st = fixture.Open(t, dir, nil)
	if _, err := st.Get(ctx, "new"); err != nil {
		t.Errorf("after another open: %v", err)
	}
}
