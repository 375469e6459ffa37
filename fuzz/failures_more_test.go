package fuzz

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// 8: nothing can be deleted on a full disk. room in wal/prepare.go keeps a reserve that deletes may use.
func TestFailures08(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	for i := range 6 {
		a.put(fmt.Sprint("k", i), 3000, "", 0)
	}
	a.flush()
	b.m.disk.SetCapacity(b.m.disk.Used())
	a.faulty = true
	full := 0
	for i := range 60 {
		if _, err := a.put(fmt.Sprint("more", i), 3000, "", 0); errors.Is(err, varve.ErrDiskFull) {
			full++
		}
	}
	if full == 0 {
		t.Fatal("the disk never filled up")
	}
	for i := range 6 {
		if err := a.delete(fmt.Sprint("k", i)); err != nil {
			t.Fatalf("delete on a full disk: %v", err)
		}
	}
	b.m.disk.SetCapacity(0)
	a.faulty, a.errs = false, nil
	a.put("after", 3000, "", 0)
	a.flush()
	b.lose(crash.LoseAll)
	b.recovered(true)
}

// 9: because of a zero-filled tail, repair cuts intact data. Everything before the zeros is kept, up to
// the last frame; replay in wal/recover.go ends where no frame links up.
func TestFailures09(t *testing.T) {
	for _, zeros := range []int{0, 8, 4096, 60000} {
		b := newBench(t)
		a, _ := b.start("a")
		var last varve.Memory
		for i := range 8 {
			last, _ = a.put(fmt.Sprint("k", i), 500, "", 0)
		}
		b.lose(crash.LoseAll)
		name, at := segmentOf(last.Version)
		b.edit(name, func(d []byte) []byte {
			end := at + 2048 // behind the last frame
			return append(d[:min(len(d), end)], make([]byte, zeros)...)
		})
		b.recovered(true)
	}
}

// 11: an empty or unreadable file is read as an empty store, which then overwrites the real one. begin
// in views.go never treats an unreadable index as empty; restore in edit.go never treats an unreadable
// file as deleted.
func TestFailures11(t *testing.T) {
	for _, name := range []string{"memory_index.json", "checkpoint", "config.json", "memories/" + jsondoc.FileName("x")} {
		for _, size := range []int{0, 1, 10} {
			b := newBench(t)
			a, _ := b.start("a")
			a.put("x", 100, "s1", 0)
			a.put("y", 3000, "", 0)
			a.close()
			b.edit(name, func(d []byte) []byte { return d[:min(size, len(d))] })
			_, o := b.m.process("after")
			st, err := varve.Open(ctx, dir, o)
			if err != nil {
				t.Fatalf("%s cut to %d bytes: %v", name, size, err)
			}
			after := &actor{h: b.h, st: st, name: "after", now: b.m.now}
			after.get("x")
			after.get("y")
			after.put("z", 10, "", 0)
			after.flush()
			after.list()
			after.close()
			b.verdict()
		}
	}
}

// 17: a transient read error is treated as corruption. passing in views.go, and isNoFrame in
// wal/walker.go: what was not read is neither absent nor damaged.
func TestFailures17(t *testing.T) {
	proofs.OneGoroutine(t)
	step := min(proofs.Every(4), 8) // on every day each read has one of them
	for i, fault := range []error{syscall.EIO, syscall.EINTR, syscall.EMFILE, syscall.EACCES} {
		for n := 1 + i%step; ; n += step {
			b := newBench(t)
			a, _ := b.start("a")
			a.put("x", 100, "s1", 0)
			a.put("y", 6000, "", 0)
			a.flush()
			a.put("x", 200, "s1", 0)
			b.lose(crash.LoseAll)
			seen := 0
			b.m.fault = func(op *wrap.Op) error {
				if op.Kind == wrap.Read || op.Kind == wrap.Open || op.Kind == wrap.Map || op.Kind == wrap.ReadDir {
					if seen++; seen == n {
						return fault
					}
				}
				return nil
			}
			_, o := b.m.process("unlucky")
			if st, err := varve.Open(ctx, dir, o); err == nil {
				r := st.Admin().OpenReport()
				if r.Damage != nil || r.Rebuilt != nil || r.TornTail != nil {
					t.Fatalf("%v at read %d was taken for damage: %+v", fault, n, r)
				}
				st.Get(ctx, "x")
				st.Get(ctx, "y")
				st.Close()
			} else if errors.Is(err, varve.ErrCorrupt) {
				t.Fatalf("%v at read %d was taken for damage: %v", fault, n, err)
			}
			b.m.fault = nil
			b.recovered(false)
			if seen < n {
				break
			}
		}
	}
}

// 19: a deleted record returns after a merge, a rebuild, from an old file, or from the log. Tombstones
// live until they are merged; a file that belongs to no memory is reported, and not used.
func TestFailures19(t *testing.T) {
	for _, end := range []string{"merge", "power", "closed"} {
		b := newBench(t)
		a, fsys := b.start("a")
		a.put("x", 100, "s1", 0)
		a.put("y", 100, "s1", 0)
		a.flush()
		old, err := vfs.ReadFile(fsys, filepath.Join(dir, "memories", jsondoc.FileName("x")), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		a.delete("x")
		switch end {
		case "merge":
			a.flush()
			for i := range 6 {
				a.put(fmt.Sprint("big", i), 19000, "", 0)
			}
			a.flush()
		case "closed":
			a.close()
			// A synchronization tool restores the file.
			if err := vfs.WriteDurable(fsys, dir+"/back", filepath.Join(dir, "memories", jsondoc.FileName("x")), old,
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.lose(crash.KeepAll)
		next, _ := b.start("next")
		if _, err := next.get("x"); !errors.Is(err, varve.ErrNotFound) {
			t.Fatalf("%s: what was deleted is back: %v", end, err)
		}
		next.list()
		next.close()
		b.verdict()
	}
}

// 20: one torn record makes the whole store unusable. A damaged file affects only its own memory.
func TestFailures20(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	for i := range 20 {
		a.put(fmt.Sprint("k", i), 15000, "s1", 0) // so many that the log has released the first
	}
	a.flush()
	a.close()
	b.edit("memories/"+jsondoc.FileName("k3"), func(d []byte) []byte { return d[:len(d)/2] })
	next, _ := b.start("next")
	for i := range 20 {
		_, err := next.st.Get(ctx, fmt.Sprint("k", i))
		var damage *varve.CorruptionError
		if i == 3 && err != nil && (!errors.As(err, &damage) || damage.Path != "memories/"+jsondoc.FileName("k3")) ||
			i != 3 && err != nil {
			t.Errorf("k%d: %v", i, err)
		}
	}
	good := 0
	for _, err := range next.st.Memories(ctx) {
		if err == nil {
			good++
		}
	}
	if good < 19 {
		t.Errorf("%d of 20 are listed", good)
	}
	if _, err := next.st.Put(ctx, varve.Memory{ID: "new", Content: "x"}); err != nil {
		t.Error(err)
	}
	next.st.Close()
}

// 23: files grow without bound. The log is released and reused, the archive keeps its limit, tmp/ its
// pool: after twice as much work nothing has grown.
func TestFailures23(t *testing.T) {
	proofs.OneGoroutine(t)
	b := newBench(t)
	a, _ := b.start("a", func(o *varve.Options) { storetest.Of(o).System.ArchiveBytes = 100 << 10 })
	used := func() int64 {
		for i := range 100 {
			a.put(fmt.Sprint("k", i%7), 8000+i, "", 0)
			if i%10 == 0 {
				a.flush()
			}
		}
		a.flush()
		return b.m.disk.Used()
	}
	used()
	once := used()
	for range 3 {
		if again := used(); again > once+once/4 {
			t.Fatalf("%d bytes, and after as much again %d", once, again)
		}
	}
	b.verdict()
}

// 68: two processes adopt each other's flushes as edits by hand, without end. A mismatch counts only if
// it is found again under flush.lock; changed in find.go.
func TestFailures68(t *testing.T) {
	b := newBench(t)
	adopted := 0
	listen := func(o *varve.Options) {
		o.CacheBytes = -1
		o.Listener = func(ev varve.Event) {
			if ev.Kind == varve.EventAdopted || ev.Kind == varve.EventEdit {
				adopted++
			}
		}
	}
	one, _ := b.start("one", listen)
	two, _ := b.start("two", listen)
	for i := range 40 {
		one.put("x", 100+i, "", 0)
		one.flush()
		two.get("x")
		two.update("x", 200+i)
		two.flush()
		one.get("x")
	}
	if adopted > 0 {
		t.Fatalf("%d flushes were taken for edits", adopted)
	}
	b.verdict()
}

// 69: after a loss of power a file holds another memory's bytes and is adopted over the acknowledged
// version. The first flush after an unclean open rewrites every file above flushed; Distrust in flush.go
// round.
func TestFailures69(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	a.put("x", 100, "", 0)
	a.put("y", 100, "", 0)
	a.flush()
	a.put("x", 300, "", 0)
	a.put("y", 300, "", 0)
	b.lose(crash.LoseAll)
	var other []byte
	b.edit("memories/"+jsondoc.FileName("y"), func(d []byte) []byte { other = d; return d })
	b.edit("memories/"+jsondoc.FileName("x"), func([]byte) []byte { return other })
	b.recovered(true)
}

// 82: a container and its host open one folder through different file systems, so that their locks do
// not exclude each other. otherKernel in wal/owner.go: another boot whose heartbeat is alive keeps the
// folder; one whose heartbeat has stopped does not.
func TestFailures82(t *testing.T) {
	for _, beats := range []bool{true, false} {
		host := newBench(t)
		a, _ := host.start("host")
		a.put("x", 100, "", 0)
		b := newBench(t)
		b.m, b.h = host.m.future(crash.KeepAll, 1), host.h.clone() // the same folder, another boot, no locks
		b.h.powerLost()
		b.m.slept = func() {
			if !beats {
				return
			}
			b.edit("wal/owner", func(d []byte) []byte {
				d = binary.LittleEndian.AppendUint64(d[:16:16], uint64(b.m.clock.UnixMicro()))
				return binary.LittleEndian.AppendUint64(d, xxhash.Sum64(d))
			})
		}
		_, o := b.m.process("container")
		st, err := varve.Open(ctx, dir, o)
		switch {
		case beats && err == nil:
			st.Close()
			t.Fatal("two kernels have one folder open")
		case beats && !errors.Is(err, varve.ErrLocked), !beats && err != nil:
			t.Fatal(err)
		case !beats:
			st.Close()
			b.recovered(false)
		}
	}
}

// 75: a clock that jumps forward expires everything, and a sweep deletes it before the clock is
// corrected. Expired memories are hidden from reads, and kept; version.expired in find.go.
func TestFailures75(t *testing.T) {
	b := newBench(t)
	a, _ := b.start("a")
	a.put("x", 100, "s1", time.Hour)
	a.put("y", 3000, "", 24*time.Hour)
	a.flush()
	right := b.m.clock
	b.m.clock = right.Add(30 * 365 * 24 * time.Hour)
	if _, err := a.st.Get(ctx, "x"); !errors.Is(err, varve.ErrNotFound) {
		t.Fatal(err)
	}
	for range a.st.Memories(ctx) {
		t.Fatal("it is listed all the same")
	}
	a.put("z", 10, "", 0)
	a.flush()
	a.close()
	b.m.clock = right.Add(time.Minute)
	next, _ := b.start("next")
	for _, id := range []string{"x", "y"} {
		if _, err := next.get(id); err != nil {
			t.Errorf("%s, with the clock put right: %v", id, err)
		}
	}
	next.close()
	b.verdict()
}

// 81, with a flusher that is killed: an editor has a file open that is displaced and parked; the process
// that parked it is killed before that is durable. The next process makes it durable before it removes
// the folder from which the file came: load in internal/docfile/park.go, EmptyTemp in empty.go; either
// is enough for most of these moments, both have to be removed for a failure.
func TestFailures81Parked(t *testing.T) {
	proofs.OneGoroutine(t)
	for seed := range uint64(60) {
		b := newBench(t)
		a, _ := b.start("a")
		first, _ := a.put("x", 100, "", 0)
		a.flush()
		hand, _ := b.m.process("hand")
		path := filepath.Join(dir, "memories", jsondoc.FileName("x"))
		f, err := hand.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		e := &editor{h: b.h, fsys: hand}
		text, err := vfs.ReadFile(hand, path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		a.put("x", 3000, "", 0)
		parked := false
		b.die(func(kill func()) {
			b.before = func(_ string, op *wrap.Op) {
				if parked && op.Kind == wrap.SyncDir {
					b.m.disk.Kill(b.view("a"))
					kill()
				}
				parked = parked || op.Kind == wrap.RenameNew && strings.Contains(op.To, "parked")
			}
			a.flush()
		})
		if b.before = nil; !parked {
			t.Fatal("nothing was parked")
		}
		next, _ := b.start("next")
		next.flush()
		x, text := e.begin(text)
		x.w.based, x.w.base = false, first.Version
		if _, err := f.WriteAt(text, 0); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(int64(len(text))), f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		x.done = true // so he was told
		b.loseBy(crash.KeepRandom, seed)
		b.recovered(true)
		fsys, _ := b.m.process("look")
		b.h.kept(fsys, true, false)
		if wrong := b.h.verdict(); len(wrong) > 0 {
			t.Fatalf("seed %d: %s", seed, joinWrong(wrong))
		}
	}
}
