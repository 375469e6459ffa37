package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/segment"
)

// The cases of FAILURES.md that are the engine's, by its numbers. Each comment names what has to be
// removed for the case to fail.

// bench is a machine whose processes a case controls step by step.
type bench struct {
	t *testing.T
	m *machine
	h *history
	// before is called before each operation, except for operations that it makes itself.
	before    func(who string, op *wrap.Op)
	busy      bool
	pauseThen func() // what happens in the next pause of any process
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, m: newMachine(), h: newHistory()}
	b.m.coverage = sim.Coverage{}
	t.Cleanup(func() { reach(b.m.coverage) })
	return b
}

// start opens a store in a process of its own.
func (b *bench) start(name string, change ...func(*varve.Options)) (*actor, vfs.FS) {
	b.t.Helper()
	fsys, o := b.m.process(name)
	storetest.Of(o).System.FS = wrap.New(fsys, func(op *wrap.Op, call func() error) error {
		if b.before != nil && !b.busy {
			b.busy = true
			b.before(name, op)
			b.busy = false
		}
		return call()
	})
	for _, c := range change {
		c(o)
	}
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return &actor{h: b.h, st: st, name: name, now: b.m.now}, fsys
}

// die runs f in a process that is killed when f calls the function passed to it.
func (b *bench) die(f func(kill func())) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(func() {
			b.busy = false
			runtime.Goexit()
		})
	}()
	<-done
}

// lose cuts the power; open handles belong to the boot before.
func (b *bench) lose(p crash.Pattern) { b.loseBy(p, 1) }

func (b *bench) loseBy(p crash.Pattern, seed uint64) {
	b.before = nil
	coverage := b.m.coverage
	b.m = b.m.future(p, seed)
	b.m.coverage = coverage
	b.h.powerLost()
}

func (b *bench) verdict() {
	b.t.Helper()
	if wrong := b.h.verdict(); len(wrong) > 0 {
		b.t.Fatalf("\n%s", joinWrong(wrong))
	}
}

// recovered opens the store, checks everything, and reports the verdict.
func (b *bench) recovered(deep bool) {
	b.t.Helper()
	b.before = nil
	fsys, o := b.m.process("after")
	recovery(b.h, fsys, o, deep)
	b.verdict()
}

// edit changes a file without the store's knowledge, durably.
func (b *bench) edit(name string, change func(data []byte) []byte) {
	b.t.Helper()
	fsys, _ := b.m.process("editor")
	path := filepath.Join(dir, name)
	data, err := vfs.ReadFile(fsys, path, 1<<30)
	if err != nil {
		b.t.Fatal(err)
	}
	data = change(data)
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err == nil {
		err = errors.Join(f.Truncate(int64(len(data))), f.Sync(), f.Close())
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// segmentOf returns the name of the segment of a version, and its offset there.
func segmentOf(version uint64) (string, int) {
	g := segment.Geometry{Size: 64 << 10}
	return "wal/" + segment.Name(g.Number(version)), int(g.Offset(version))
}

func is(op *wrap.Op, kind wrap.Kind, suffix string) bool {
	return op.Kind == kind && strings.HasSuffix(op.Path, suffix)
}

// tailWord is the word of the shared page that publishes an append.
const tailWord = 4

// 1: a write is acknowledged before it is durable. The sync before the answer: syncTo in wal/commit.go
// lead.
func TestFailures01(t *testing.T) {
	for _, p := range crash.Patterns() {
		b := newBench(t)
		a, _ := b.start("a")
		a.put("x", 100, "s1", 0)
		a.batch(change{id: "y", size: 10}, change{id: "z", size: 3000})
		b.lose(p)
		b.recovered(true)
	}
}

// 2: a bit flip within the log is treated as the torn tail. attestedBehind, and the durable mark of this
// boot, in wal/recover.go replay.
func TestFailures02(t *testing.T) {
	for _, boot := range []string{"same", "next"} {
		b := newBench(t)
		a, _ := b.start("a")
		a.put("x", 100, "", 0)
		second, _ := a.put("y", 100, "", 0)
		for i := range 5 {
			a.put(fmt.Sprint("z", i), 100, "", 0)
		}
		if boot == "next" {
			b.lose(crash.LoseAll)
		} else {
			b.m.disk.Kill(b.view("a"))
		}
		name, at := segmentOf(second.Version)
		var before []byte
		b.edit(name, func(d []byte) []byte { d[at+80] ^= 4; before = bytes.Clone(d); return d })
		after, fsys := b.start("after")
		var damage *varve.CorruptionError
		if r := after.st.Admin().OpenReport(); r.Damage == nil || r.TornTail != nil {
			t.Fatalf("%s boot: %+v", boot, r)
		}
		if _, err := after.st.Put(ctx, varve.Memory{Content: "no"}); !errors.Is(err, varve.ErrReadOnly) || !errors.As(err,
			&damage) {
			t.Fatalf("%s boot: put: %v", boot, err)
		}
		if _, err := after.st.Get(ctx, "x"); err != nil {
			t.Fatalf("%s boot: what lies before the damage: %v", boot, err)
		}
		after.st.Close()
		if now, err := vfs.ReadFile(fsys, filepath.Join(dir, name), 1<<30); err != nil || !bytes.Equal(now, before) {
			t.Fatalf("%s boot: the damaged log was changed (%v)", boot, err)
		}
	}
}

func (b *bench) view(name string) *crash.Process { return b.m.views[name] }

// 3: a hole: a segment is missing and the next one is replayed nevertheless. roll in wal/walker.go
// requires the predecessor's exact end; an open without the segments in between reports damage.
func TestFailures03(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a", func(o *varve.Options) { storetest.Of(o).System.BacklogBytes = 1 << 30 })
	var versions []uint64
	for i := range 12 {
		m, _ := a.put(fmt.Sprint("k", i), 19000, "", 0)
		versions = append(versions, m.Version)
	}
	b.lose(crash.KeepAll)
	fsys, o := b.m.process("after")
	hole, _ := segmentOf(versions[5])
	last, _ := segmentOf(versions[11])
	if hole == last || fsys.Remove(filepath.Join(dir, hole)) != nil {
		t.Fatal("the workload has become too small")
	}
	kept, _ := vfs.ReadFile(fsys, filepath.Join(dir, last), 1<<30)
	st, err := varve.Open(ctx, dir, o)
	if err == nil {
		if st.Admin().OpenReport().Damage == nil {
			t.Fatalf("a hole was not seen: %+v", st.Admin().OpenReport())
		}
		if _, err := st.Get(ctx, "k11"); err == nil {
			t.Fatal("what lies behind the hole was replayed")
		}
		st.Close()
	}
	if now, _ := vfs.ReadFile(fsys, filepath.Join(dir, last), 1<<30); !bytes.Equal(now, kept) {
		t.Fatal("the segment behind the hole was changed")
	}
}

// 3 and 4, at the end of a segment: a power cut loses what was written before the end, and keeps what was
// written behind it. dropBehind in wal/recover.go removes the start of the segment behind, so that it cannot
// follow the entries written next.
func TestFailures03Roll(t *testing.T) {
	for seed := uint64(0); seed < 40; seed += uint64(proofs.Every(4)) {
		for _, p := range []crash.Pattern{crash.KeepRandom, crash.KeepLate, crash.LoseAll, crash.KeepAll} {
			b := newBench(t)
			big := func(o *varve.Options) { storetest.Of(o).System.BacklogBytes = 1 << 30 }
			other, _ := b.start("other", big)
			a, _ := b.start("a", big)
			for i := range 3 {
				a.put(fmt.Sprint("k", i), 19000, "", 0)
			}
			b.die(func(kill func()) {
				b.before = func(who string, op *wrap.Op) {
					if who == "a" && is(op, wrap.TryLock, "sync.lock") {
						b.m.disk.Kill(b.view("a")) // published, not synced
						kill()
					}
				}
				a.batch(change{id: "k0", del: true}, change{id: "l", size: 5000 + 100*int(seed)})
			})
			cut := false
			b.die(func(kill func()) {
				b.before = func(_ string, op *wrap.Op) {
					if is(op, wrap.Datasync, ".wal") {
						cut = true
						kill()
					}
				}
				other.put("r", 19000, "", 0)
			})
			if !cut {
				t.Fatal("nothing was cut")
			}
			b.loseBy(p, seed)
			next, _ := b.start("next", big)
			for i := range 4 {
				next.put(fmt.Sprint("n", i), 19000-int(seed), "", 0)
			}
			b.loseBy(crash.KeepAll, seed)
			b.recovered(false)
		}
	}
}

// 4: a torn append makes the store unopenable. The end of replay in wal/recover.go: what is not attested
// is cut.
func TestFailures04(t *testing.T) {
	for _, p := range crash.Patterns() {
		b, cut := newBench(t), false
		a, _ := b.start("a")
		a.put("x", 100, "", 0)
		b.before = func(_ string, op *wrap.Op) {
			if is(op, wrap.Datasync, ".wal") {
				cut = true
				b.lose(p)
				b.recovered(true)
				runtime.Goexit()
			}
		}
		b.die(func(func()) {
			a.batch(change{id: "y", size: 4000}, change{id: "z", size: 9000}, change{id: "x", del: true})
		})
		if !cut {
			t.Fatal("nothing was cut")
		}
	}
}

// 5: a folder is not synced after a create or rename. SyncDir in docfile round.go, in table/write.go, in
// wal ensureSegment and startSegment, in vfs WriteDurable.
func TestFailures05(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	a.put("x", 100, "s1", 0)
	a.flush()
	a.put("y", 100, "s1", 0)
	b.lose(crash.LoseAll)
	fsys, _ := b.m.process("look")
	for _, name := range []string{"memories/" + jsondoc.FileName("x"), "memory_index.json", "checkpoint", "config.json"} {
		if b, err := vfs.ReadFile(fsys, filepath.Join(dir, name), 1<<30); err != nil || len(b) == 0 {
			t.Errorf("%s after Flush and a loss of power: %d bytes, %v", name, len(b), err)
		}
	}
	b.recovered(true)
}

// 5, the store's own folders: the first open fails at a sync of a folder, or is killed there; the next
// one must not assume that what it finds is durable. The SyncDir of the parent in enter.go makeStore,
// that of the store in wal/open.go openShared.
func TestFailures05Making(t *testing.T) {
	proofs.OneGoroutine(t)
	for _, c := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		killed, lostLog := c[0], c[1]
		for n := 1; ; n++ {
			b, seen := newBench(t), 0
			if lostLog { // the store exists, and its wal/ is missing
				a, _ := b.start("before")
				a.close()
				b.removeAll(filepath.Join(dir, "wal"))
				b.removeAll(filepath.Join(dir, "memories"))
			}
			b.m.fault = func(op *wrap.Op) error {
				if op.Kind == wrap.SyncDir {
					if seen++; seen == n {
						if killed {
							b.m.disk.Kill(b.view("first"))
							runtime.Goexit()
						}
						return syscall.EIO
					}
				}
				return nil
			}
			b.die(func(func()) {
				_, o := b.m.process("first")
				if st, err := varve.Open(ctx, dir, o); err == nil {
					st.Close()
				}
			})
			b.m.fault = nil
			if seen < n {
				break
			}
			a, _ := b.start("a")
			a.put("x", 100, "", 0)
			a.flush()
			a.put("y", 100, "", 0)
			b.lose(crash.LoseAll)
			b.recovered(false)
		}
	}
}

// 5, a new segment: a process is killed between its rename and the sync of wal/; another process writes
// into it. The SyncDir in wal/prepare.go enter.
func TestFailures05Roll(t *testing.T) {
	b := newBench(t)
	big := func(o *varve.Options) { storetest.Of(o).System.BacklogBytes = 1 << 30 }
	other, _ := b.start("other", big)
	a, _ := b.start("a", big)
	named, killed := false, false
	b.die(func(kill func()) {
		b.before = func(who string, op *wrap.Op) {
			named = named || op.Kind == wrap.RenameNew && strings.HasSuffix(op.To, ".wal")
			if named && op.Kind == wrap.SyncDir {
				killed = true
				b.m.disk.Kill(b.view("a"))
				kill()
			}
		}
		for i := range 10 {
			a.put(fmt.Sprint("k", i), 15000, "", 0)
		}
	})
	if b.before = nil; !killed {
		t.Fatal("no segment was made")
	}
	for i := range 4 {
		other.put(fmt.Sprint("r", i), 15000, "", 0)
	}
	b.lose(crash.LoseAll)
	b.recovered(true)
}

// 6: fsync fails, the next one "succeeds". The rewrite in wal/sync.go syncLocked.
func TestFailures06(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	a.put("x", 100, "", 0)
	b.failSyncs(1, "datasync", ".wal")
	a.faulty = true
	a.put("y", 100, "", 0)
	a.put("z", 100, "", 0)
	if len(a.errs) > 0 {
		t.Fatal(a.errs) // one failure is healed
	}
	b.lose(crash.LoseAll)
	b.recovered(true)
}

// failSyncs makes the next n syncs of a kind fail.
func (b *bench) failSyncs(n int, kind, suffix string) {
	b.m.disk.FailSync(func(op, name string) error {
		if n > 0 && op == kind && strings.Contains(name, suffix) {
			n--
			return syscall.EIO
		}
		return nil
	})
}

// 7: ENOSPC within an append makes the log permanently unusable. room in wal/prepare.go allocates the
// space before the append, with a reserve that deletes may use.
func TestFailures07(t *testing.T) {
	proofs.OneGoroutine(t)
	for spare := int64(0); spare < 200<<10; spare += 12 << 10 {
		b := newBench(t)
		a, _ := b.start("a", func(o *varve.Options) { storetest.Of(o).System.BacklogBytes = 1 << 30 })
		a.faulty = true
		a.put("x", 100, "", 0)
		b.m.disk.SetCapacity(b.m.disk.Used() + spare)
		full := false
		for i := range 20 {
			_, err := a.put(fmt.Sprint("k", i%4), 15000, "", 0)
			full = full || errors.Is(err, varve.ErrDiskFull)
			if err != nil && !errors.Is(err, varve.ErrDiskFull) {
				t.Fatalf("%d spare bytes: %v", spare, err)
			}
		}
		if !full {
			t.Fatalf("%d spare bytes: the disk was not full", spare)
		}
		for full = false; !full; { // and what is left of it
			_, err := a.put("small", 200, "", 0)
			full = errors.Is(err, varve.ErrDiskFull)
			if err != nil && !full {
				t.Fatalf("%d spare bytes: %v", spare, err)
			}
		}
		if err := a.delete("x"); err != nil {
			t.Fatalf("%d spare bytes: a delete on the full disk: %v", spare, err)
		}
		b.m.disk.SetCapacity(0)
		if _, err := a.put("y", 15000, "", 0); err != nil {
			t.Fatalf("%d spare bytes: service does not return: %v", spare, err)
		}
		if spare%(24<<10) == 0 {
			b.lose(crash.LoseAll)
		} else {
			b.m.disk.Kill(b.view("a"))
		}
		b.recovered(true)
	}
}

// 10: "applied up to" is not atomic with the data: cut everywhere in a flush. The order in flush.go
// round: files, index, checkpoint.
func TestFailures10(t *testing.T) {
	n := cutEverywhere(t, "TestFailures10", 0, 1, func(m *machine, h *history) {
		script10(m, h, 0)
	}, func(m *machine, h *history) { script10(m, h, 1) })
	if n.cuts == 0 {
		t.Fatal("nothing was cut")
	}
}

func script10(m *machine, h *history, part int) {
	a := &actor{h: h, name: "ten", now: m.now}
	_, o := m.process("ten")
	var err error
	if a.st, err = varve.Open(ctx, dir, o); err != nil {
		a.failed("open", err)
		return
	}
	a.put("x", 100+part, "s1", 0)
	a.put("y", 5000, "s1", 0)
	a.delete("x")
	a.put("z", 10, "", 0)
	a.flush()
	if part == 0 {
		a.close()
	}
}

// 13: a second checkpointer with old data resets a log that is in use. sight and the fresh Checkpoint at
// the beginning of flush.go round; raise in wal/page.
func TestFailures13(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	a.put("x", 100, "", 0)
	late, _ := b.start("late")
	late.get("x")
	for i := range 30 { // a rolls, spills and recycles
		a.put(fmt.Sprint("k", i%5), 15000, "", 0)
	}
	a.put("fresh", 100, "", 0)
	late.flush()
	a.put("fresh", 200, "", 0)
	late.close()
	b.lose(crash.LoseAll)
	b.recovered(true)
}

// 15: a recycled file replays old records. The position in each header, the number of the segment in its
// checksum (segment/frame.go), the zeroed block (wal/release.go recycle): each is enough, all have to be
// removed for a failure.
func TestFailures15(t *testing.T) {
	recycled := 0
	b := newBench(t)
	b.before = func(_ string, op *wrap.Op) {
		if op.Kind == wrap.RenameNew && strings.HasSuffix(op.Path, ".wal") {
			recycled++
		}
	}
	a, _ := b.start("a")
	for i := range 40 {
		a.put(fmt.Sprint("k", i%10), 15000, "", 0)
	}
	for i := range 10 {
		a.delete(fmt.Sprint("k", i))
	}
	for i := range 20 {
		a.put(fmt.Sprint("n", i%3), 15000, "", 0)
	}
	if recycled == 0 {
		t.Fatal("nothing was recycled")
	}
	b.lose(crash.KeepAll)
	b.recovered(true)
}

// 16: the lock file is unlinked, and there are two owners. stillOurs in wal/locks.go.
func TestFailures16(t *testing.T) {
	b := newBench(t)
	a, fsys := b.start("a")
	a.put("x", 100, "", 0)
	for _, name := range []string{"open.lock", "attach.lock", "append.lock", "sync.lock", "flush.lock"} {
		if err := fsys.Remove(filepath.Join(dir, "wal", name)); err != nil {
			t.Fatal(err)
		}
	}
	second, _ := b.start("second") // recovers under a
	second.put("y", 100, "", 0)
	if _, err := a.put("z", 100, "", 0); !errors.Is(err, varve.ErrClosed) {
		t.Fatalf("a second life of the log is not noticed: %v", err)
	}
	if err := a.st.Flush(ctx); !errors.Is(err, varve.ErrClosed) {
		t.Fatalf("flush: %v", err)
	}
	second.put("x", 200, "", 0)
	second.close()
	b.recovered(true)
}

// 18: a size limit that is enforced only by reading. wal/append.go request.
func TestFailures18(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	accepted, refused := 0, 0
	for size := 20000; size < 60000; size += 500 {
		if _, err := a.put(fmt.Sprint("k", size), size, "", 0); err == nil {
			accepted++
		} else if errors.Is(err, varve.ErrTooLarge) {
			refused++
		} else {
			t.Fatal(err)
		}
	}
	if accepted == 0 || refused == 0 {
		t.Fatalf("%d accepted, %d refused", accepted, refused)
	}
	a.batch(a.twenty()...)
	b.lose(crash.LoseAll)
	b.recovered(true)
}

func (a *actor) twenty() (list []change) {
	for i := range 20 {
		list = append(list, change{id: fmt.Sprint("t", i), size: 1400})
	}
	return list
}

// 62: recovery serves frames that are only in the page cache. settleEnd in wal/recover.go.
func TestFailures62(t *testing.T) {
	for _, flush := range []bool{false, true} {
		b := newBench(t)
		a, _ := b.start("a")
		a.put("x", 100, "", 0)
		b.die(func(kill func()) {
			b.before = func(_ string, op *wrap.Op) {
				if is(op, wrap.Datasync, ".wal") {
					b.m.disk.Kill(b.view("a"))
					kill()
				}
			}
			a.put("y", 100, "", 0)
		})
		b.before = nil
		next, _ := b.start("next")
		if _, err := next.get("y"); err != nil {
			t.Fatalf("what the cache holds was not recovered: %v", err)
		}
		if flush {
			next.flush()
		}
		b.lose(crash.LoseAll)
		b.recovered(true)
	}
}

// 63: a displaced file is reused while another process reads it, or has a second name. The lease and the
// link count in docfile/displace.go inspect.
func TestFailures63(t *testing.T) {
	b := newBench(t)
	a, fsys := b.start("a")
	a.put("x", 300, "", 0)
	a.put("y", 300, "", 0)
	a.flush()
	other, _ := b.m.process("reader")
	name := func(id string) string { return filepath.Join(dir, "memories", jsondoc.FileName(id)) }
	before := map[string][]byte{}
	for _, id := range []string{"x", "y"} {
		before[id], _ = vfs.ReadFile(fsys, name(id), 1<<20)
	}
	f, err := other.OpenFile(name("x"), os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Link(name("y"), "/backup-of-y"); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		a.put("x", 301+i, "", 0)
		a.put("y", 301+i, "", 0)
		a.put("z", 301+i, "", 0)
		a.flush()
	}
	got := make([]byte, len(before["x"]))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, before["x"]) {
		t.Errorf("the reader of x goes on with %.60q (%v)", got, err)
	}
	if got, err := vfs.ReadFile(other, "/backup-of-y", 1<<20); err != nil || !bytes.Equal(got, before["y"]) {
		t.Errorf("the backup of y is %.60q (%v)", got, err)
	}
	b.verdict()
}

// 64: a writer is killed after a long append and before publishing it; a shorter append overwrites its
// start. The header of zeros behind each append, wal/commit.go gather.
func TestFailures64(t *testing.T) {
	proofs.OneGoroutine(t)
	for size := 0; size < 4000; size += 100 {
		b := newBench(t)
		other, _ := b.start("other")
		other.put("x", 100, "", 0)
		a, _ := b.start("a")
		b.die(func(kill func()) {
			b.before = func(_ string, op *wrap.Op) {
				if is(op, wrap.Store, "shared") && op.Word == tailWord {
					b.m.disk.Kill(b.view("a"))
					kill()
				}
			}
			a.batch(change{id: "p", size: 100}, change{id: "q", size: 200}, change{id: "x", del: true},
				change{id: "r", size: 900}, change{id: "s", size: 900})
		})
		b.before = nil
		other.put("y", size, "", 0)
		b.lose(crash.KeepAll)
		b.recovered(size%1000 == 0)
	}
}

// 64, at the end of a segment: the next append does not fit, and goes to the next segment; the remains
// must not be replayed. endSegment in wal/commit.go.
func TestFailures64Roll(t *testing.T) {
	for _, p := range []crash.Pattern{crash.KeepAll, crash.LoseAll, crash.KeepRandom, crash.KeepLate} {
		b := newBench(t)
		big := func(o *varve.Options) { storetest.Of(o).System.BacklogBytes = 1 << 30 }
		other, _ := b.start("other", big)
		reader, _ := b.start("reader", big)
		for i := range 3 {
			other.put(fmt.Sprint("k", i), 19000, "", 0)
		}
		reader.get("k0")
		a, _ := b.start("a", big)
		b.die(func(kill func()) {
			b.before = func(_ string, op *wrap.Op) {
				if is(op, wrap.Store, "shared") && op.Word == tailWord {
					b.m.disk.Kill(b.view("a"))
					kill()
				}
			}
			a.batch(change{id: "p", size: 100}, change{id: "k0", del: true}, change{id: "q", size: 3000})
		})
		b.before = nil
		other.put("r", 19000, "", 0)
		other.put("s", 100, "", 0)
		for _, id := range []string{"k0", "p", "q", "r", "s"} {
			reader.get(id)
		}
		b.lose(p)
		b.recovered(true)
	}
}

// 65: a read-only process opens first after a power loss; the next writer must
// recover. openReadOnly in wal/readonly.go attaches to nothing.
func TestFailures65(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	a.put("x", 100, "", 0)
	b.lose(crash.KeepRandom)
	reader, _ := b.start("reader", func(o *varve.Options) { o.ReadOnly = true })
	reader.get("x")
	writer, _ := b.start("writer")
	if r := writer.st.Admin().OpenReport(); !r.Recovered {
		t.Fatalf("%+v", r)
	}
	writer.put("y", 100, "", 0)
	b.m.clock = b.m.clock.Add(time.Second) // a page that was missing is checked for now and then
	if _, err := reader.get("y"); err != nil {
		t.Fatalf("the reader does not follow: %v", err)
	}
	b.lose(crash.LoseAll)
	b.recovered(true)
}

// 66: a refused lock upgrade releases the lock that was held. wal/open.go openShared never converts;
// each role has a handle of its own.
func TestFailures66(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	for range 3 {
		second, fsys := b.start("second")
		l, err := fsys.OpenLock(filepath.Join(dir, "wal", "attach.lock"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if ok, _ := l.TryLock(vfs.ModeExclusive); ok {
			t.Fatal("nobody holds attach.lock while two have the store open")
		}
		second.close()
		if ok, _ := l.TryLock(vfs.ModeExclusive); ok {
			t.Fatal("the first let go of attach.lock when the second left")
		}
		l.Close()
		a.put("x", 100, "", 0)
	}
	b.lose(crash.LoseAll)
	b.recovered(true)
}

// 67: the last acknowledged write of a store that was closed cleanly is damaged and treated as a torn tail.
// The attested mark in wal/recover.go replay.
func TestFailures67(t *testing.T) {
	for _, boot := range []string{"same", "next"} {
		b := newBench(t)
		prepareLarge(b.m, b.h) // a small index is written at Close, and the frame no longer matters
		a, _ := b.start("a")
		m, _ := a.put("last", 100, "", 0)
		a.close()
		if boot == "next" {
			b.lose(crash.LoseAll)
		}
		name, at := segmentOf(m.Version)
		b.edit(name, func(d []byte) []byte { d[at+3] ^= 1; return d })
		after, _ := b.start("after")
		if r := after.st.Admin().OpenReport(); r.Healed == nil || r.TornTail != nil {
			t.Fatalf("%s boot: %+v", boot, r)
		}
		// Close had put it into its file.
		if m, err := after.st.Get(ctx, "last"); err != nil || m.Content != content(tokenOf(m.Content), 100) {
			t.Fatalf("%s boot: %q, %v", boot, m.Content, err)
		}
		if n, err := after.st.Count(ctx); err != nil || n != largeCount+1 {
			t.Fatalf("%s boot: %d memories, %v", boot, n, err)
		}
	}
}

// 70: a store folder is cloned by git, or loses its wal/. create in wal/recover.go starts above every
// known LSN; views of another UUID are ignored.
func TestFailures70(t *testing.T) {
	for _, lost := range [][]string{{"wal"}, {"wal", "checkpoint"},
		{"wal", "checkpoint", "memory_index.json", "tmp", "backups"}} {
		b := newBench(t)
		a, _ := b.start("a")
		versions := map[string]uint64{}
		for i := range 8 {
			id := fmt.Sprint("k", i)
			m, _ := a.put(id, 100+i, "", 0)
			versions[id] = m.Version
		}
		uuid := a.st.Admin().Stats().UUID
		a.close()
		for _, name := range lost {
			b.removeAll(filepath.Join(dir, name))
		}
		after, _ := b.start("after")
		if after.st.Admin().Stats().UUID == uuid {
			t.Errorf("without %v: the UUID is that of the old log", lost)
		}
		if n, err := after.st.Count(ctx); err != nil || n != 8 {
			t.Errorf("without %v: %d memories, %v", lost, n, err)
		}
		for id, v := range versions {
			m, err := after.st.Get(ctx, id)
			if err != nil {
				t.Fatalf("without %v: %v", lost, err)
			}
			if _, err := after.st.Put(ctx, varve.Memory{ID: id, Content: "stale"}, varve.IfVersion(v)); !errors.Is(err,
				varve.ErrConflict) {
				t.Errorf("without %v: a version of the life before is taken for one of this: %v", lost, err)
			}
			n, err := after.st.Put(ctx, varve.Memory{ID: id, Content: "new"}, varve.IfVersion(m.Version))
			if err != nil || len(lost) < 3 && n.Version <= v {
				t.Errorf("without %v: version %d after %d: %v", lost, n.Version, v, err)
			}
		}
		if err := after.st.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (b *bench) removeAll(path string) {
	fsys, _ := b.m.process("rm")
	if names, err := fsys.ReadDir(path); err == nil {
		for _, n := range names {
			b.removeAll(filepath.Join(path, n))
		}
	}
	fsys.Remove(path)
}

// 71: a failed barrier is followed by a successful one. flush.go round moves no mark after a round that
// failed, so all of its files are written again.
func TestFailures71(t *testing.T) {
	proofs.OneGoroutine(t)
	for _, kind := range []string{"sync", "barrier", "syncdir"} {
		for n := 1; n < 4; n++ {
			b := newBench(t)
			a, _ := b.start("a", func(o *varve.Options) {
				storetest.Of(o).System.RoundBytes = 1 << 20
				storetest.Of(o).System.ArchiveBytes = -1 // or its copies restore what was lost
			})
			a.faulty = true
			for range 2 {
				for i := 0; i < 80; i += 20 { // more than are synced one by one
					var list []change
					for k := range 20 {
						list = append(list, change{id: fmt.Sprint("k", i+k), size: 100})
					}
					a.batch(list...)
				}
				a.errs = nil
				b.failSyncs(n, kind, map[string]string{"sync": "/tmp/", "barrier": "", "syncdir": "/memories"}[kind])
				for a.flush() != nil {
					if len(a.errs) > n+1 {
						t.Fatal(a.errs)
					}
				}
			}
			for i := range 12 { // the log before is released and reused
				a.put(fmt.Sprint("n", i%2), 15000, "", 0)
			}
			a.flush()
			b.lose(crash.LoseAll)
			b.recovered(true)
		}
	}
}

// 72: a conditional put is refused because of another process's write that never
// became durable. need in wal/commit.go gather: the refusal waits for the sync.
func TestFailures72(t *testing.T) {
	for _, conditional := range []string{"absent", "version", "delete"} {
		b := newBench(t)
		a, _ := b.start("a")
		other, _ := b.start("other")
		var was varve.Memory
		if conditional != "absent" {
			was, _ = a.put("x", 50, "", 0)
		}
		b.die(func(kill func()) {
			b.before = func(who string, op *wrap.Op) {
				if who != "a" || !is(op, wrap.TryLock, "sync.lock") {
					return
				}
				// a has written and published, and not synced.
				switch conditional {
				case "absent":
					other.putAbsent("x", 60)
				case "version":
					other.putIf("x", 60, was)
				case "delete":
					other.delete("x")
				}
				b.m.disk.Kill(b.view("a"))
				kill()
			}
			if conditional == "delete" {
				a.delete("x")
			} else {
				a.put("x", 70, "", 0)
			}
		})
		b.lose(crash.LoseAll)
		b.recovered(true)
	}
}

// 76: a sync fails, the log continues behind it, and a waiter whose frame is in the lost range gets the
// answer "durable". The rewrite in wal/sync.go syncLocked, and syncing, which informs the next process.
func TestFailures76(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	other, _ := b.start("other")
	a.put("x", 100, "", 0)
	a.faulty, other.faulty = true, true
	b.failSyncs(1, "datasync", ".wal")
	done := false
	b.before = func(who string, op *wrap.Op) {
		// a's sync has failed; it has released sync.lock and is about to wait.
		if who == "a" && is(op, wrap.Unlock, "sync.lock") && !done {
			done = true
			b.pauseThen = func() { other.put("z", 100, "", 0) }
		}
	}
	b.m.slept = func() {
		if f := b.pauseThen; f != nil {
			b.pauseThen = nil
			f()
		}
	}
	a.put("y", 100, "", 0)
	if !done || len(a.errs)+len(other.errs) > 0 {
		t.Fatal(done, a.errs, other.errs)
	}
	b.lose(crash.LoseAll)
	b.recovered(true)
}

// 77: the cache is trusted after a failed sync, by a new process in the same boot. settleEnd in
// wal/recover.go rewrites everything above the attested mark.
func TestFailures77(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	a.put("x", 100, "", 0)
	b.failSyncs(1, "datasync", ".wal")
	b.die(func(kill func()) {
		b.before = func(_ string, op *wrap.Op) {
			if is(op, wrap.Unlock, "sync.lock") { // the sync has failed
				b.m.disk.Kill(b.view("a"))
				kill()
			}
		}
		a.put("y", 100, "", 0)
	})
	b.before = nil
	next, _ := b.start("next")
	next.get("y")
	next.put("z", 100, "", 0)
	b.lose(crash.LoseAll)
	b.recovered(true)
}

// 78: a new base is in place and the delta is removed while a reader holds the old base. The set is
// swapped as a whole (internal/state Swap), and views.go sight.
func TestFailures78(t *testing.T) {
	proofs.OneGoroutine(t)
	b := newBench(t)
	prepareLarge(b.m, b.h)
	a, fsys := b.start("a")
	for i := range 4 {
		a.put(fmt.Sprint("p", i), 14000, "", 0)
	}
	if _, err := fsys.Stat(filepath.Join(dir, "memory_index.delta.json")); err != nil {
		t.Fatal("no delta was written")
	}
	reader, _ := b.start("reader")
	readOnly, _ := b.start("read-only", func(o *varve.Options) { o.ReadOnly = true })
	reader.get("p0")
	// At every step of the merge.
	b.before = func(who string, op *wrap.Op) {
		if who == "a" && op.Kind.Changes() && !strings.Contains(op.Path, "shared") {
			for _, r := range []*actor{reader, readOnly} {
				r.get("p0")
				r.get("p3")
				r.get(long("m", 1))
				if n, err := r.st.Count(ctx); err != nil || n != largeCount+4 {
					t.Errorf("before %s %s: %s counts %d (%v)", op.Kind, op.Path, r.name, n, err)
				}
				if n := len(r.list()); n != largeCount+4 {
					t.Errorf("before %s %s: %s lists %d", op.Kind, op.Path, r.name, n)
				}
			}
		}
	}
	a.flush()
	a.put("p0", 30, "", 0)
	a.flush()
	b.before = nil
	reader.calm()
	b.verdict()
	// And the other way round: a merges between two steps of a reader that maps the index.
	for n := range 6 {
		for i := range 4 { // a delta for the reader to find
			a.put(fmt.Sprint("p", i), 14000+n, "", 0)
		}
		maps := 0
		b.before = func(who string, op *wrap.Op) {
			if who == "reader" && op.Kind == wrap.Open && strings.Contains(op.Path, "memory_index") {
				if maps++; maps == n+1 {
					a.flush()
				}
			}
		}
		reader.list()
		for i := range 4 {
			reader.get(fmt.Sprint("p", i))
		}
		reader.get(long("m", n))
		b.before = nil
		reader.calm()
		b.verdict()
	}
}

// 79: a process is killed after [delete a, delete b], unpublished; another process appends an identical
// "delete a". The header of zeros behind each append, and the link with its nonce: either is enough,
// both have to be removed for a failure.
func TestFailures79(t *testing.T) {
	for range 8 {
		b := newBench(t)
		other, _ := b.start("other")
		other.batch(change{id: "a", size: 50}, change{id: "b", size: 50})
		a, _ := b.start("a")
		b.die(func(kill func()) {
			b.before = func(_ string, op *wrap.Op) {
				if is(op, wrap.Store, "shared") && op.Word == tailWord {
					b.m.disk.Kill(b.view("a"))
					kill()
				}
			}
			a.batch(change{id: "a", del: true}, change{id: "b", del: true})
		})
		b.before = nil
		other.delete("a")
		other.get("b")
		b.lose(crash.KeepAll)
		b.recovered(true)
	}
}

// 80: a process resumes after its place in the log was released and serves an outdated cache. restart in
// wal/state.go, Swaps in internal/state.
func TestFailures80(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	a.put("x", 100, "", 0)
	a.put("gone", 100, "", 0)
	late, _ := b.start("late")
	late.get("x")
	late.get("gone")
	late.list()
	for i := range 40 {
		a.put(fmt.Sprint("k", i%5), 15000, "", 0)
		if i == 3 {
			a.put("x", 200, "", 0)
			a.delete("gone")
		}
	}
	late.get("x")
	late.get("gone")
	late.calm()
	late.putAbsent("gone", 10)
	late.update("x", 30)
	a.get("x")
	b.verdict()
}

// 84: another program's config.json in a project folder is taken as that of a store. errNoMember in
// enter.go.
func TestFailures84(t *testing.T) {
	for _, text := range []string{`{}`, `{"name":"my-project","version":1}`, `[1]`, `not json`, ``} {
		m := newMachine()
		fsys, o := m.process("a")
		if err := errors.Join(fsys.Mkdir(dir, 0o700),
			vfs.WriteDurable(fsys, dir+"/t", dir+"/config.json", []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if st, err := varve.Open(ctx, dir, o); err == nil {
			st.Close()
			t.Errorf("%q was taken for a store", text)
		} else if strings.HasPrefix(text, "{") && !errors.Is(err, varve.ErrNoStore) {
			t.Errorf("%q: %v", text, err)
		}
		if names, _ := fsys.ReadDir(dir); len(names) != 1 {
			t.Errorf("%q: the folder now holds %v", text, names)
		}
	}
}
