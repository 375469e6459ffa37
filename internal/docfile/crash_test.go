package docfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

const handmade = "{\"id\":\"e.json\",\"by\":\"hand\"}\n"

// scene is a store on a simulated disk and a round about to run: a and d are replaced, b is deleted, c is
// new, e was saved by hand, f is held open by a reader, g is replaced, h is not part of the round.
type scene struct {
	*bed
	disk *crash.Disk
	how  way
}

type way struct {
	barrier    bool
	noExchange bool
	late       bool // the save happens right before the exchange, not before the round
	unnamed    bool // new documents get files without a name; the round begins with one, i.json
}

func (w way) String() string {
	s := fmt.Sprintf("barrier=%v,noExchange=%v,late=%v", w.barrier, w.noExchange, w.late)
	if w.unnamed {
		s += ",unnamed"
	}
	return s
}

// on opens the store on a disk.
func (s *scene) on(disk *crash.Disk, process vfs.FS) *scene {
	b := &bed{t: s.t, fs: &hookFS{FS: process, barriers: true}, now: s.now, known: s.known}
	b.l = Layout{FS: b.fs, Root: "/store"}
	b.folder = b.l.Folder("memories")
	next := &scene{bed: b, disk: disk, how: s.how}
	b.fl = b.flusher(fmt.Sprintf("tok%d", process.Host().Boot[1]*1000+uint64(process.Host().PID)), func(o *Options) {
		o.Direct, o.TempFiles, o.Unnamed = -1, 3, -1
		if s.how.unnamed {
			o.Unnamed = 1
		}
		if s.how.barrier {
			o.Direct = 1
		}
	})
	next.watch(nil)
	return next
}

// watch registers f, which is called before each operation.
func (s *scene) watch(f func(op, name string)) {
	s.fs.on = func(op, name string) error {
		if f != nil {
			f(op, name)
		}
		if op == "exchange" && s.how.noExchange {
			return errors.ErrUnsupported
		}
		return nil
	}
}

// emptyScene is a store without a document.
func emptyScene(t testing.TB, how way) *scene {
	disk := crash.New()
	p := disk.Process("engine")
	s := &scene{bed: &bed{t: t, now: time.Unix(1790000000, 0), known: map[string][]string{}}, how: how}
	s = s.on(disk, p)
	for _, err := range []error{p.Mkdir("/store", 0o700), p.SyncDir("/"), s.folder.Make()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func newScene(t testing.TB, how way) *scene {
	s := emptyScene(t, how)
	var cs []Change
	for _, n := range []string{"a", "b", "d", "e", "f", "g", "h"} {
		cs = append(cs, s.change(n+".json", 0, 1))
	}
	s.put(cs...)
	if _, err := s.disk.Process("reader").OpenFile(s.folder.Path("f.json"), os.O_RDONLY, 0); err != nil {
		t.Fatal(err)
	}
	if !how.late {
		s.save()
	}
	return s
}

// save saves as a careful editor does: a new file, synced, renamed over the old one.
func (s *scene) save() {
	ed := s.disk.Process("editor")
	f, err := ed.OpenFile("/store/e.new", os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteAt([]byte(handmade), 0)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for _, err := range []error{f.Sync(), f.Close(), ed.Rename("/store/e.new", s.folder.Path("e.json")),
		ed.SyncDir("/store"), ed.SyncDir("/store/memories")} {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scene) changes() []Change {
	var list []Change
	if s.how.unnamed {
		list = append(list, s.change("i.json", 0, 2))
	}
	return append(list,
		s.change("a.json", 1, 2), s.change("b.json", 1, 0), s.change("c.json", 0, 2), s.change("d.json", 1, 2),
		s.change("e.json", 1, 2), s.change("f.json", 1, 2), s.change("g.json", 1, 2),
	)
}

// run runs the round and calls moment before each operation once the edit is made.
func (s *scene) run(moment func()) error {
	saved := !s.how.late
	s.watch(func(op, name string) {
		if !saved && (op == "exchange" && strings.HasSuffix(name, "e.json") || s.how.noExchange && op == "renamenew" && s.edited()) {
			saved = true
			s.save()
		}
		if saved && moment != nil {
			moment()
		}
	})
	_, err := s.fl.Round(context.Background(), s.changes())
	if !saved {
		s.t.Fatal("the edit was never made")
	}
	s.watch(nil)
	return err
}

// edited reports whether the round has reached e.json, which follows d.json.
func (s *scene) edited() bool {
	info, err := s.fs.FS.Stat(s.folder.Path("d.json"))
	return err == nil && info.Mtime.Equal(s.mtime(2))
}

// recover does what an engine does when it opens a store that was not closed.
func (s *scene) recover() error {
	s.fl.Distrust()
	if _, err := s.fl.EmptyTemp(s.surplus); err != nil {
		return err
	}
	_, err := s.fl.Round(context.Background(), s.changes())
	return err
}

// check returns an error unless all documents and the edit are there.
func (s *scene) check() error {
	want := map[string]int{"a": 2, "c": 2, "d": 2, "e": 2, "f": 2, "g": 2, "h": 1}
	if s.how.unnamed {
		want["i"] = 2
	}
	for n, v := range want {
		got, info, err := s.folder.Read(n+".json", 0)
		if err != nil || string(got) != doc(n+".json", v) || !info.Mtime.Equal(s.mtime(v)) {
			return fmt.Errorf("%s.json: %q, %v", n, got, err)
		}
	}
	if _, err := s.folder.Stat("b.json"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("b.json is back: %v", err)
	}
	kept, err := s.quarantined()
	if err != nil {
		return err
	}
	if n := len(kept[handmade]); n != 1 {
		return fmt.Errorf("the edit lies %d times in quarantine: %v", n, kept)
	}
	return nil
}

// quarantined returns names by content.
func (s *scene) quarantined() (map[string][]string, error) {
	m := map[string][]string{}
	names, err := s.fs.ReadDir("/store/quarantine")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, n := range names {
		if strings.HasSuffix(n, noteSuffix) || strings.HasSuffix(n, partSuffix) {
			continue
		}
		data, err := vfs.ReadFile(s.fs, "/store/quarantine/"+n, 1<<20)
		if err != nil {
			return nil, err
		}
		if note, err := vfs.ReadFile(s.fs, "/store/quarantine/"+n+noteSuffix, 1<<20); err != nil || len(note) == 0 {
			return nil, fmt.Errorf("%s has no note: %v", n, err)
		}
		m[string(data)] = append(m[string(data)], n)
	}
	return m, nil
}

func ways() (list []way) {
	for _, barrier := range []bool{false, true} {
		for _, noExchange := range []bool{false, true} {
			for _, late := range []bool{false, true} {
				list = append(list, way{barrier: barrier, noExchange: noExchange, late: late})
			}
		}
		list = append(list, way{barrier: barrier, unnamed: true})
	}
	return list
}

// Power is cut before each operation of a round, with each pattern of loss; the
// recovery from it is cut once more at a random operation. Replay one with
// go test -run 'TestPowerLoss/<way>' ./internal/docfile; the seeds are fixed.
func TestPowerLoss(t *testing.T) {
	proofs.OneGoroutine(t)
	for _, how := range ways() {
		t.Run(how.String(), func(t *testing.T) {
			cuts := 0
			s := newScene(t, how)
			try := func(at int, p crash.Pattern, seed uint64) {
				cuts++
				rng := rand.New(rand.NewPCG(seed, uint64(at)))
				where := fmt.Sprintf("cut before operation %d, %v, seed %d", at, p, seed)
				next := s.disk.Crash(p, rng)
				one := s.on(next, next.Process("recovery"))
				if got, _, err := one.folder.Read("h.json", 0); err != nil || string(got) != doc("h.json", 1) {
					t.Fatalf("%s: h.json, which the round does not touch: %q %v", where, got, err)
				}
				ops, second := 0, rng.IntN(80)
				var third *crash.Disk
				one.watch(func(string, string) {
					if ops++; ops == second {
						third = next.Crash(crash.Patterns()[rng.IntN(len(crash.Patterns()))], rng)
					}
				})
				if err := one.recover(); err != nil {
					t.Fatalf("%s: recovery: %v", where, err)
				}
				one.watch(nil)
				if err := one.check(); err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				if third != nil {
					two := s.on(third, third.Process("recovery"))
					if err := two.recover(); err != nil {
						t.Fatalf("%s, again at %d: recovery: %v", where, second, err)
					}
					if err := two.check(); err != nil {
						t.Fatalf("%s, again at %d: %v", where, second, err)
					}
				}
			}
			at := 0
			err := s.run(func() {
				at++
				for _, p := range crash.Patterns() {
					for seed := range uint64(seeds(p)) {
						try(at, p, seed)
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			// The round is durable: nothing needs to be written again.
			for _, p := range crash.Patterns() {
				next := s.disk.Crash(p, rand.New(rand.NewPCG(1, 1)))
				if err := s.on(next, next.Process("after")).check(); err != nil {
					t.Fatalf("after the round, %v: %v", p, err)
				}
			}
			t.Logf("%d cuts at %d operations", cuts, at)
		})
	}
}

func seeds(p crash.Pattern) int {
	switch p {
	case crash.KeepPrefix, crash.KeepRandom, crash.KeepLate:
		if proofs.Long() {
			return 8
		}
		return 2
	}
	return 1
}

// The process is killed before each operation; another takes flush.lock.
func TestKill(t *testing.T) {
	for _, how := range ways() {
		t.Run(how.String(), func(t *testing.T) {
			for k, more := 1, true; more; k++ {
				s := newScene(t, how)
				done, killed := make(chan struct{}), false
				go func() {
					defer close(done)
					n := 0
					if err := s.run(func() {
						if n++; n == k {
							killed = true
							s.disk.Kill(s.fs.FS.(*crash.Process))
							runtime.Goexit()
						}
					}); err != nil {
						t.Error(err)
					}
				}()
				<-done
				more = killed
				next := s.on(s.disk, s.disk.Process("next"))
				if err := next.recover(); err != nil {
					t.Fatalf("killed before operation %d: %v", k, err)
				}
				if err := next.check(); err != nil {
					t.Fatalf("killed before operation %d: %v", k, err)
				}
				kept, err := next.quarantined()
				if err != nil {
					t.Fatal(err)
				}
				// One temp file may have been half written.
				if len(kept) > 2 {
					t.Fatalf("killed before operation %d: in quarantine: %q", k, slices.Collect(maps.Keys(kept)))
				}
			}
		})
	}
}

// The program that saved the edit may not have synced it: when the round is durable, the edit is.
func TestUnsyncedEditIsDurableAfterRound(t *testing.T) {
	s := newScene(t, way{})
	for _, n := range []string{"a.json", "g.json"} { // replaced; deleted
		f, err := s.disk.Process("editor").OpenFile(s.folder.Path(n), os.O_RDWR, 0)
		if err == nil {
			_, err = f.WriteAt([]byte("careless "+n), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	s.round(s.change("a.json", 1, 2), s.change("g.json", 1, 0))
	next := s.disk.Crash(crash.LoseAll, rand.New(rand.NewPCG(1, 1)))
	kept, err := s.on(next, next.Process("after")).quarantined()
	if err != nil || len(kept) != 2 {
		t.Fatalf("%q %v", kept, err)
	}
	for text := range kept {
		if !strings.HasPrefix(text, "careless ") {
			t.Fatalf("%q", text)
		}
	}
}

// FAILURES 71: the pages of a failed barrier are lost although the next barrier succeeds; only what was
// written again, to other inodes, is durable.
func TestFailedBarrierLosesNothing(t *testing.T) {
	for _, p := range crash.Patterns() {
		s := newScene(t, way{barrier: true})
		s.disk.FailSync(func(op, _ string) error {
			if op == "barrier" {
				return errors.New("EIO")
			}
			return nil
		})
		if _, err := s.fl.Round(context.Background(), s.changes()); err == nil {
			t.Fatal("no error")
		}
		s.disk.FailSync(nil)
		s.round(s.changes()...)
		s.disk.DropCaches()
		if err := s.check(); err != nil {
			t.Fatalf("%v, before the power loss: %v", p, err)
		}
		next := s.disk.Crash(p, rand.New(rand.NewPCG(7, 7)))
		if err := s.on(next, next.Process("after")).check(); err != nil {
			t.Fatalf("%v: %v", p, err)
		}
	}
}
