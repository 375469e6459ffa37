package fuzz

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

var (
	allBits  = flag.Bool("all-bits", false, "TestRot: every bit and every byte of every file")
	rotShare = flag.String("rot-share", "1/1", "TestRot -all-bits: the k-th of n shares, for long runs in pieces")
	rotStore = flag.String("rot-store", "", "TestRot: of this store only: small-closed, small-killed, small-cut, large-closed …")
	rotFile  = flag.String("rot-file", "", "TestRot: of files whose names begin so only")
	rotAt    = flag.Int64("rot-at", -1, "TestRot: this bit, or this byte with -rot-cut, only")
	rotCut   = flag.Bool("rot-cut", false, "TestRot: cuts only")
	rotShow  = flag.Bool("rot-show", false, "TestRot: tell of each case what became of it")
)

// rotten is a store that is damaged in one place at a time.
type rotten struct {
	m        *machine
	h        *history
	name     string
	closed   bool // every answer is attested: no part of the log may be treated as a torn tail
	want     map[string][]byte
	version  map[string]uint64
	groups   map[string][][]byte // assemblies: their versions, nil where there was none, the newest last
	hits     string              // of a search by vector
	files    []string
	attested uint64          // the log's end, for the checkpoint
	end      uint64          // the end as an open finds it: a flipped bit in the zeros behind it is no damage
	padding  map[uint64]bool // bytes behind a payload that fill up to eight: nothing depends on them
	lateFrom string          // the first token that only the log has
	allocs   uint64          // that one sound run makes
	ops      int
}

// rotSmall makes a store with everything that a store can have on disk.
func rotSmall(m *machine, h *history) *actor {
	a := &actor{h: h, name: "rot", now: m.now}
	fsys, o := m.process("rot")
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		a.failed("open", err)
		return a
	}
	a.st = st
	member := func(id string, size int, session string) { // of an assembly that it takes along
		a.put(id, size, session, 0)
		h.writes[len(h.writes)-1].commit = st.Admin().Stats().Durable
	}
	a.put("a", 100, "s1", 0)
	a.put("long", 9000, "s1", time.Hour*10000) // compressed in the log
	a.put("gone", 200, "", 0)
	for _, g := range []varve.Assembly{{ID: "group", MemoryIDs: []string{"a", "long"}}, {ID: "group gone", MemoryIDs: []string{"long"}}} {
		_, err := st.Assemblies().Put(ctx, g)
		a.do("group", err)
	}
	a.flush()
	for i := range 5 { // segments for the archive
		member("long", 15000+i, "s1")
	}
	a.batch(change{id: "b", size: 700}, change{id: "c", size: 5000, session: "s2"}, change{id: "x:y", size: 40})
	a.flush()
	m.clock = m.clock.Add(2 * time.Hour) // a backup of the index is due
	member("a", 60, "s1")
	a.delete("gone")
	a.do("delete a group", st.Assemblies().Delete(ctx, "group gone"))
	a.flush()
	// Another program's file in the place of a memory: set aside, with a note.
	h.bad2(overwrite(fsys, "memories/"+jsondoc.FileName("b"), func([]byte) []byte { return []byte("{ not a memory") }))
	a.put("b", 90, "s2", 0)
	a.put("e", 30, "", 0)
	a.flush()
	// Memories that only the log has.
	a.put("late", 6000, "s1", 0)
	_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: "group late", MemoryIDs: []string{"late"}})
	a.do("group", err)
	member("a", 80, "s2")
	a.delete("e")
	a.batch(change{id: "p", size: 12}, change{id: "q", size: 500, session: "s1"})
	return a
}

// rotLarge makes a store with base and delta.
func rotLarge(m *machine, h *history) *actor {
	prepareLarge(m, h)
	a := &actor{h: h, name: "rot", now: m.now}
	_, o := m.process("rot")
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		a.failed("open", err)
		return a
	}
	a.st = st
	a.delete(long("m", 3))
	a.put(long("m", 4), 60, "s1", 0)
	a.do("flush", st.Flush(ctx)) // a delta
	a.put("late", 100, "", 0)
	a.delete(long("m", 5))
	return a
}

func (h *history) bad2(err error) {
	if err != nil {
		h.bad("%v", err)
	}
}

// overwrite changes a file in place, as an editor that saves into it.
func overwrite(fsys vfs.FS, name string, change func([]byte) []byte) error {
	path := filepath.Join(dir, name)
	b, err := vfs.ReadFile(fsys, path, 1<<30)
	if err != nil {
		return err
	}
	b = change(b)
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Truncate(int64(len(b))), f.Sync(), f.Close())
}

func rotStores(t *testing.T) (list []*rotten) {
	for _, c := range []struct {
		name string
		make func(m *machine, h *history) *actor
	}{{"small", rotSmall}, {"large", rotLarge}} {
		for _, end := range []string{"closed", "killed", "cut"} {
			r := &rotten{m: newMachine(), h: newHistory(), name: c.name + "-" + end, closed: end != "cut"}
			if *rotStore != "" && *rotStore != r.name {
				continue
			}
			a := c.make(r.m, r.h)
			switch end {
			case "closed":
				a.close()
			case "killed": // the page of this boot still knows how far the log was durable
				r.m.disk.Kill(r.m.views["rot"])
			case "cut":
				r.m = r.m.future(crash.LoseAll, 1)
				r.h.powerLost()
			}
			r.learn(t)
			list = append(list, r)
		}
	}
	return list
}

// again returns a copy of the store, on a machine that may be damaged.
func (r *rotten) again() *machine {
	if !r.closed {
		return r.m.future(crash.KeepAll, 0)
	}
	// The same boot continues: its page is valid.
	m := &machine{clock: r.m.clock, started: r.m.started, sites: r.m.sites}
	m.use(r.m.disk.Copy())
	return m
}

// learn records a run without damage.
func (r *rotten) learn(t *testing.T) {
	t.Helper()
	for _, w := range slices.Backward(r.h.writes) {
		if r.lateFrom = w.token; w.id == "late" {
			break
		}
	}
	m := r.again()
	_, o := m.process("look")
	a := &actor{h: r.h.clone(), name: "look", now: m.now}
	var err error
	if a.st, err = varve.Open(ctx, dir, o); err != nil {
		t.Fatal(err)
	}
	r.end = a.st.Admin().Stats().Durable
	r.want, r.version = map[string][]byte{}, map[string]uint64{}
	for _, id := range r.h.known() {
		b, err := a.st.Admin().GetRaw(ctx, id)
		if errors.Is(err, varve.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.st.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		r.want[id], r.version[id] = b, got.Version
	}
	r.groups = map[string][][]byte{}
	for _, id := range rotGroups {
		list := [][]byte{nil}
		for v, err := range a.st.Assemblies().History(ctx, id) {
			if errors.Is(err, varve.ErrNotFound) {
				break // a store without assemblies
			}
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v.Document)
		}
		r.groups[id] = list
	}
	if r.hits, err = rotHits(a.st); err != nil {
		t.Fatal(err)
	}
	a.calm()
	if wrong := a.h.verdict(); len(wrong) > 0 {
		t.Fatalf("%s, undamaged: %s", r.name, joinWrong(wrong))
	}
	m = r.again()
	before := allocated()
	c := r.spoil(m, func(vfs.FS) error { return nil })
	if len(c.wrong) > 0 || len(c.errs) > 0 {
		t.Fatalf("%s, undamaged: %s; %v", r.name, joinWrong(c.wrong), c.errs)
	}
	r.allocs, r.ops = allocated()-before, m.ops
	fsys, _ := r.again().process("list")
	check, err := wal.ReadCheckpoint(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	r.attested = check.Attested.LSN
	r.files = tree(t, fsys, dir)
	r.pads(t, fsys, segment.Geometry{UUID: check.UUID, Size: check.SegmentSize})
}

// pads finds the padding of frames.
func (r *rotten) pads(t *testing.T, fsys vfs.FS, geo segment.Geometry) {
	t.Helper()
	r.padding = map[uint64]bool{}
	for _, name := range r.files {
		number, ok := segment.ParseName(filepath.Base(name))
		if !ok || filepath.Dir(name) != "wal" {
			continue
		}
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, name), 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		start := geo.Start(number)
		for at := start + segment.StartSize; at < start+uint64(len(b)); {
			h, err := geo.ParseHeader(b[at-start:], at)
			if err != nil {
				break
			}
			for p := at + segment.HeaderSize + uint64(h.Length); p < h.End(); p++ {
				r.padding[p] = true
			}
			at = h.End()
		}
	}
	if len(r.padding) == 0 {
		t.Fatalf("%s: no frame is filled up", r.name)
	}
}

// tree returns the files below a folder.
func tree(t *testing.T, fsys vfs.FS, root string) (list []string) {
	t.Helper()
	names, err := fsys.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		path := filepath.Join(root, name)
		info, err := fsys.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode.IsDir() {
			list = append(list, tree(t, fsys, path)...)
		} else {
			list = append(list, path[len(dir)+1:])
		}
	}
	return list
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// rotCase is the result of one damage.
type rotCase struct {
	// anything: there may be any damage, in several places. Then only values that were never put are
	// wrong, besides what must not happen in any case.
	anything bool
	// forged: the changed data have valid checksums. Then a value may be one that was never put.
	forged       bool
	r            *rotten
	wrong        []string
	errs         []error // that callers were told
	named        bool    // verify, or the open, named the file
	lost         bool    // something is missing, and this was reported
	found        []varve.Finding
	ends         uint64                 // of the log, where it was damaged or torn
	damage, heal *varve.CorruptionError // of the log
	verified     bool
}

func (c *rotCase) bad(format string, args ...any) {
	if c.anything && (c.forged || !strings.Contains(format, "nobody put")) && !strings.Contains(format, "panic") &&
		!strings.Contains(format, "listed twice") && !strings.Contains(format, "cannot be told") && !strings.Contains(format, "after the damage") {
		return
	}
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// rotTyped has the errors that a caller can act on when something is damaged.
func rotTyped(err error) bool {
	for _, known := range []error{varve.ErrCorrupt, varve.ErrNewerFormat, varve.ErrReadOnly, varve.ErrNoStore, varve.ErrInvalid} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func (c *rotCase) told(what string, err error) {
	c.errs = append(c.errs, fmt.Errorf("%s: %w", what, err))
	if !rotTyped(err) {
		c.bad("%s: the error cannot be told: %v", what, err)
	}
}

// rotAlone is locked by a case whose allocations are measured alone.
var rotAlone sync.RWMutex

// measured is spoil, and limits the allocations. These are counted for the whole process: a case that
// seems to allocate too much, perhaps because of others, is repeated alone.
func (r *rotten) measured(damage func(fsys vfs.FS) error) *rotCase {
	try := func() (*rotCase, int64) {
		before := allocated()
		c := r.spoil(r.again(), damage)
		return c, int64(allocated()-before) - int64(r.allocs)
	}
	most := rotMost + 3*int64(r.allocs)
	rotAlone.RLock()
	c, more := try()
	rotAlone.RUnlock()
	if more <= most {
		return c
	}
	rotAlone.Lock()
	defer rotAlone.Unlock()
	if c, more = try(); more > most {
		c.bad("%d MiB allocated, a sound run takes %d", more>>20, r.allocs>>20)
	}
	return c
}

// spoil damages the store and works with it.
func (r *rotten) spoil(m *machine, damage func(fsys vfs.FS) error) *rotCase {
	c := &rotCase{r: r, ends: never64}
	c.run(m, damage)
	return c
}

func (c *rotCase) run(m *machine, damage func(fsys vfs.FS) error) {
	r := c.r
	defer func() {
		if p := recover(); p != nil {
			c.bad("panic: %v\n%s", p, debug.Stack())
		}
	}()
	hand, _ := m.process("hand")
	if err := damage(hand); err != nil {
		c.bad("%v", err)
		return
	}
	most := 1 << 17
	if r.ops > 0 {
		most = 8*r.ops + 20000
	}
	m.hook = func(_ *crash.Process, op *wrap.Op) {
		if m.ops > most {
			panic(fmt.Sprintf("%d operations where a sound store takes %d: no end in sight", m.ops, r.ops))
		}
	}
	if st := c.open(m, "open read-only", true); st != nil {
		c.verify(st)
		c.read(st, "read-only")
		if err := st.Close(); err != nil {
			c.told("close read-only", err)
		}
	}
	st := c.open(m, "open", false)
	if st == nil {
		return
	}
	if !c.verified {
		c.verify(st)
	}
	c.read(st, "first")
	m0, err := st.Put(ctx, varve.Memory{ID: "new", Content: "after the damage"})
	if err != nil {
		c.told("put", err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		c.told("flush", err)
	}
	c.read(st, "flushed")
	if err := st.Close(); err != nil {
		c.told("close", err)
	}
	if st = c.open(m, "open again", false); st == nil {
		return
	}
	c.read(st, "again")
	if m0.Version != 0 {
		switch got, err := st.Get(ctx, "new"); {
		case err != nil:
			c.bad("what was put after the damage: %v", err)
		case got.Content != "after the damage" || got.Version != m0.Version:
			c.bad("what was put after the damage is %q, version %d", got.Content, got.Version)
		}
	}
	if err := st.Close(); err != nil {
		c.told("close again", err)
	}
}

// verify reads with a handle that changes nothing, or, if there is none, with the first that changes
// something.
func (c *rotCase) verify(st *varve.Store) {
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil {
			c.told("verify", err)
			break
		}
		c.found = append(c.found, f)
	}
	c.verified = true
}

func (c *rotCase) open(m *machine, what string, readOnly bool) *varve.Store {
	_, o := m.process(what)
	o.ReadOnly = readOnly
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		c.told(what, err)
		return nil
	}
	r := st.Admin().OpenReport()
	if r.TornTail != nil {
		if c.r.closed && r.TornTail.LSN < c.r.end {
			c.bad("%s: %d bytes behind %d, which is attested, were taken for a torn tail", what, r.TornTail.Bytes, r.TornTail.LSN)
		}
		c.ends = min(c.ends, r.TornTail.LSN)
	}
	if r.Damage != nil {
		// The log is readable up to there, the handle is read-only and its report says why: it serves
		// the state as of then.
		if c.damage = r.Damage; r.Damage.LSN != 0 {
			c.ends = min(c.ends, r.Damage.LSN)
		}
	}
	if r.Healed != nil {
		c.heal = r.Healed
	}
	return st
}

// read compares everything with the state before the damage.
func (c *rotCase) read(st *varve.Store, when string) {
	for _, id := range c.r.h.known() {
		if c.r.h.bulk[id] && id[2]%8 != 0 {
			continue
		}
		want := c.r.want[id]
		b, err := st.Admin().GetRaw(ctx, id)
		m, err2 := st.Get(ctx, id)
		switch {
		case err == nil && bytes.Equal(b, want):
		case err == nil && err2 == nil && c.stoodThen(id, tokenOf(m.Content)):
		case err == nil && want == nil:
			c.bad("%s: %.20q, which was deleted, is back", when, id)
		case err == nil:
			c.bad("%s: %.20q has %d bytes (%.60q), not the %d (%.60q) that were put", when, id, len(b), b, len(want), want)
		case errors.Is(err, varve.ErrNotFound):
			if want != nil && !c.stoodThen(id, "") {
				c.bad("%s: %.20q is said not to exist", when, id)
			}
		default:
			c.told(when+": get", err)
			c.lost = c.lost || want != nil && when == "again"
		}
		switch {
		case err2 == nil && (c.r.h.tokens[tokenOf(m.Content)] == nil || c.r.h.tokens[tokenOf(m.Content)].id != id):
			c.bad("%s: %.20q holds %.30q, which nobody put", when, id, m.Content)
		case err2 == nil && want != nil && m.Version != c.r.version[id] && m.Version%8 == 0 && !c.stoodThen(id, tokenOf(m.Content)):
			c.bad("%s: %.20q is version %d, and was %d", when, id, m.Version, c.r.version[id])
		case err2 != nil && !errors.Is(err2, varve.ErrNotFound):
			c.told(when+": get", err2)
		}
	}
	listed, failed := map[string]bool{}, false
	for m, err := range st.Memories(ctx) {
		if err != nil {
			c.told(when+": list", err)
			failed = true
			continue
		}
		if listed[m.ID] {
			c.bad("%s: %.20q is listed twice", when, m.ID)
		}
		listed[m.ID] = true
		if c.r.want[m.ID] == nil && m.ID != "new" && !c.stoodThen(m.ID, tokenOf(m.Content)) {
			c.bad("%s: %.20q is listed, and was deleted or never there", when, m.ID)
		}
	}
	if !failed {
		for id := range c.r.want {
			if !listed[id] && !c.stoodThen(id, "") {
				c.bad("%s: %.20q is not listed", when, id)
			}
		}
	}
	if _, err := st.Count(ctx); err != nil {
		c.told(when+": count", err)
	}
	c.readGroups(st, when)
	switch hits, err := rotHits(st); {
	case err != nil:
		c.told(when+": search", err)
	case hits != c.r.hits && c.r.closed && c.ends == never64:
		c.bad("%s: a search by vector finds %s, not %s", when, hits, c.r.hits)
	}
}

// rotGroups are the assemblies of rotSmall.
var rotGroups = []string{"group", "group gone", "group late"}

// readGroups compares the assemblies: they are as before, or, if the log was damaged or torn, which was
// reported, as they were at some time.
func (c *rotCase) readGroups(st *varve.Store, when string) {
	if c.r.groups == nil {
		return // the native targets do not know them
	}
	for _, id := range rotGroups {
		list := c.r.groups[id]
		b, err := st.Assemblies().GetRaw(ctx, id)
		if err != nil && !errors.Is(err, varve.ErrNotFound) {
			c.told(when+": get group", err)
			c.lost = c.lost || list[len(list)-1] != nil && when == "again"
			continue
		}
		if c.r.closed && c.ends == never64 {
			list = list[len(list)-1:]
		}
		if !slices.ContainsFunc(list, func(was []byte) bool { return bytes.Equal(was, b) }) {
			c.bad("%s: assembly %q is %.200q, not %.200q, nobody put that", when, id, b, list[len(list)-1])
		}
	}
}

// rotHits returns the result of a search by vector.
func rotHits(st *varve.Store) (string, error) {
	hits, err := st.Search(ctx, varve.Query{Vector: []float32{1, 0.5, 60}, Limit: 20})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "%.20q %.6f, ", h.ID, h.Score)
	}
	groups, err := st.Assemblies().Search(ctx, varve.Query{Vector: []float32{1, 0.5, 60}, Limit: 20})
	for _, h := range groups {
		fmt.Fprintf(&b, "%.20q %.6f, ", h.ID, h.Score)
	}
	return b.String(), err
}

// stoodThen reports whether the log was damaged or torn at c.ends, which was reported, and this was the
// value at that moment ("": none). A batch is there completely or not at all.
//
// After a loss of power and without a close, the part that no checkpoint attests may also end without a
// report: a log that was cut at the end of a frame looks complete.
func (c *rotCase) stoodThen(id, token string) bool {
	ends := c.ends
	if !c.r.closed && ends == never64 {
		ends = 0 // anything that the unattested part ever contained
	}
	if ends == never64 {
		return false
	}
	var may []string // the newest last
	last, passed := uint64(0), false
	value := ""
	for _, w := range c.r.h.writes {
		at := w.version
		if at == 0 { // a delete: behind the write before it
			at = last + 1
		}
		last = max(last, at)
		passed = passed || w.token >= c.r.lateFrom
		if w.id != id || w.outcome != acked {
			continue
		}
		if at >= ends && (passed || ends > 0) || ends < w.commit || w.batch != 0 || w.del {
			may = append(may, value)
		}
		if at < ends || ends == 0 {
			value = w.value()
		}
		if ends == 0 && passed {
			may = append(may, value)
		}
	}
	return slices.Contains(append(may, value), token)
}

const never64 = 1 << 62

// flip inverts a bit and keeps the mtime.
func flip(name string, bit int64) func(vfs.FS) error {
	return damaging(name, func(f vfs.File) error {
		var b [1]byte
		if _, err := f.ReadAt(b[:], bit/8); err != nil {
			return err
		}
		b[0] ^= 1 << (bit % 8)
		_, err := f.WriteAt(b[:], bit/8)
		return err
	})
}

func cutAt(name string, at int64) func(vfs.FS) error {
	return damaging(name, func(f vfs.File) error { return f.Truncate(at) })
}

func damaging(name string, change func(vfs.File) error) func(vfs.FS) error {
	return func(fsys vfs.FS) error {
		f, err := fsys.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			err = change(f)
		}
		return errors.Join(err, f.SetMtime(info.Mtime), f.Sync(), f.Close())
	}
}

// rotMost is how many bytes more than a run without damage a damaged one may allocate.
const rotMost = 24 << 20

// TestRot flips bits and cuts files short, one at a time, of small stores that were closed, killed, or
// cut off: opening and reading then give what was put, or an error that names the damage; nothing else,
// and no panic, no endless work, no excessive heap. Verify names the place.
func TestRot(t *testing.T) {
	proofs.OneGoroutine(t)
	all := newRotTally()
	var mu sync.Mutex
	stores := rotStores(t)
	t.Run("stores", func(t *testing.T) {
		for _, r := range stores {
			if !proofs.Long() && strings.HasPrefix(r.name, "large") {
				continue
			}
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				n := r.everywhere(t)
				t.Log(n)
				mu.Lock()
				defer mu.Unlock()
				all.add(n)
			})
		}
	})
	t.Log("all:", all)
}

type rotTally struct {
	cases, told, lost, named int
	silent, refused          map[string]int // by kind of file
}

func newRotTally() *rotTally {
	return &rotTally{silent: map[string]int{}, refused: map[string]int{}}
}

func (n *rotTally) add(o *rotTally) {
	n.cases, n.told, n.lost, n.named = n.cases+o.cases, n.told+o.told, n.lost+o.lost, n.named+o.named
	for k, v := range o.silent {
		n.silent[k] += v
	}
	for k, v := range o.refused {
		n.refused[k] += v
	}
}

func (n *rotTally) String() string {
	return fmt.Sprintf("%d damages, %d seen by callers, %d with something lost, %d named; not named, by file: %v; the open refused: %v",
		n.cases, n.told, n.lost, n.named, sorted(n.silent), sorted(n.refused))
}

func (r *rotten) everywhere(t *testing.T) *rotTally {
	n, failures := newRotTally(), 0
	for _, name := range r.files {
		if !strings.HasPrefix(name, *rotFile) || *rotFile == "" && !*allBits && r.isBulk(name) {
			continue
		}
		fsys, _ := r.again().process("size")
		info, err := fsys.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		one := func(what string, at int64, damage func(vfs.FS) error) {
			if *rotAt >= 0 && *rotAt != at {
				return
			}
			n.cases++
			c := r.measured(damage)
			byteAt := at
			if what == "bit" {
				byteAt /= 8
			}
			c.judge(name, byteAt, what != "bit")
			if len(c.errs) > 0 {
				n.told++
			}
			if c.lost {
				n.lost++
			}
			if c.named {
				n.named++
			} else {
				n.silent[rotClass(name)]++
			}
			for _, err := range c.errs {
				if strings.HasPrefix(err.Error(), "open:") {
					n.refused[rotClass(name)]++
				}
			}
			if *rotShow {
				t.Logf("%s, %s %d: named %v, cut %v, errors %v, found %v", name, what, at, c.named, c.ends, c.errs, c.found)
			}
			if len(c.wrong) > 0 {
				t.Errorf("%s store, %s, %s %d: errors %.300v\n%.900s\n\tgo test ./fuzz -run TestRot -rot-store %s -rot-file %s -rot-at %d -rot-cut=%v",
					r.name, name, what, at, fmt.Sprint(c.errs), joinWrong(c.wrong), r.name, name, at, what == "cut at byte")
				if failures++; failures > 30 {
					t.FailNow()
				}
			}
		}
		for at := range rotPoints(info.Size, rotFew(r, name)) {
			one("cut at byte", at, cutAt(name, at))
		}
		if !*rotCut {
			for at := range rotPoints(info.Size*8, 3*rotFew(r, name)) {
				one("bit", at, flip(name, at))
			}
		}
	}
	return n
}

func sorted(m map[string]int) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s %d, ", k, m[k])
	}
	return strings.TrimSuffix(b.String(), ", ")
}

func rotClass(name string) string {
	folder, base := filepath.Split(name)
	if folder == "" {
		return base
	}
	return folder + "*" + filepath.Ext(base)
}

// isBulk reports whether the file is one of many that are alike.
func (r *rotten) isBulk(name string) bool {
	for id := range r.h.bulk {
		if name == "memories/"+jsondoc.FileName(id) {
			return true
		}
	}
	return false
}

// rotFew returns how many places of a file the daily run tries.
func rotFew(r *rotten, name string) int64 {
	large := strings.HasPrefix(r.name, "large")
	switch {
	case !proofs.Long(), large && !strings.HasPrefix(name, "memory_index"):
		return 1
	case name == "checkpoint", strings.HasSuffix(name, ".wal"), strings.HasPrefix(name, "memory_index"):
		return 20
	case strings.HasPrefix(name, "memories/"):
		return 8
	}
	return 4
}

// rotPoints returns the places from 0 to size-1 that are tried: all, or some including the first and the
// last, at distances that reach every bit of a byte.
func rotPoints(size, few int64) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		step := max(1, size/few)
		if step > 1 {
			step |= 1
		}
		if *allBits || *rotAt >= 0 {
			step = 1
		}
		last := int64(-1)
		var share, shares int64
		if n, err := fmt.Sscanf(*rotShare, "%d/%d", &share, &shares); n != 2 || err != nil || share < 1 || share > shares {
			panic("-rot-share is k/n, from 1/n to n/n: " + *rotShare)
		}
		for at := int64(0); at < size; at += step {
			if *allBits && at%shares != share-1 {
				continue
			}
			if last = at; !yield(at) {
				return
			}
		}
		if size > 0 && last != size-1 && !*allBits {
			yield(size - 1)
		}
	}
}

// judge reports whether the damage was named. In a store that was closed every damage of data must be:
// elsewhere the next flush rewrites what was not attested.
func (c *rotCase) judge(name string, at int64, cut bool) {
	offsets := []int64{}
	for _, f := range c.found {
		if f.Path == name {
			c.named = true
			offsets = append(offsets, f.Offset)
		}
	}
	for _, err := range c.errs {
		var d *varve.CorruptionError
		c.named = c.named || errors.As(err, &d) && d.Path == name || strings.Contains(err.Error(), name)
	}
	for _, d := range []*varve.CorruptionError{c.damage, c.heal} {
		c.named = c.named || d != nil && d.Path == name
	}
	c.named = c.named || c.ends != never64
	if !strings.HasSuffix(c.r.name, "-closed") || !c.r.holdsData(name, at) {
		return
	}
	if !c.named {
		c.bad("nobody named %s", name)
	}
	if c.lost && !strings.HasPrefix(name, "memories/") && !strings.HasPrefix(name, "assemblies/") {
		c.bad("a memory is still out of reach, and its file is sound")
	}
	for _, o := range offsets {
		if o <= at {
			return
		}
	}
	if len(offsets) > 0 && !cut {
		c.bad("verify names %s at %v, the damage is at byte %d", name, offsets, at)
	}
}

// holdsData reports whether anything depends on the byte.
func (r *rotten) holdsData(name string, at int64) bool {
	g := segment.Geometry{Size: 64 << 10}
	switch {
	case strings.HasSuffix(name, ".wal"):
		number, _ := segment.ParseName(filepath.Base(name))
		lsn := g.Start(number) + uint64(at)
		return lsn < r.attested && !r.padding[lsn]
	case name == "checkpoint":
		return at%4096 < 144
	}
	return strings.HasPrefix(name, "memories/") || strings.HasPrefix(name, "assemblies/") || strings.HasPrefix(name, "vector_index/") || strings.HasPrefix(name, "memory_index") ||
		strings.HasPrefix(name, "backups/") || strings.HasPrefix(name, "wal/archive/")
}
