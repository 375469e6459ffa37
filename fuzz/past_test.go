package fuzz

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/segment"
)

// pasts is a store whose log lacks some of what its files have, and every version that was ever current
// in it: none of them may be lost by what replaces, deletes, evicts or expires them.
type pasts struct {
	s     *sim.Sim
	rng   *rand.Rand
	dir   string
	acts  int // that are left to do in this boot
	n     int // contents that were made up
	ahead time.Duration
	gaps  bool // a repair has recorded some
	wrong []string
	did   map[string]int
	known map[string]map[uint64]*pastVersion // by the id; of an assembly by "group "+id
	taken map[string]map[uint64]bool         // removed with the file by an edit by hand; a cache may still have them
}

type pastVersion struct {
	content string // what was put; "" where it is not known
	doc     []byte // the bytes that it had when they were seen first
	file    bool   // its file may be the only copy
}

func (w *pasts) bad(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// was records that a version was current. It must equal what was seen of it before.
func (w *pasts) was(key string, version uint64, v pastVersion) {
	if w.taken[key][version] {
		return
	}
	if w.known[key] == nil {
		w.known[key] = map[uint64]*pastVersion{}
	}
	have := w.known[key][version]
	if have == nil {
		w.known[key][version] = &v
		return
	}
	if v.doc != nil && have.doc != nil && !bytes.Equal(v.doc, have.doc) || v.content != "" && have.content != "" && v.content != have.content {
		w.bad("%s: version %d was %.60q %.300q, and is %.60q %.300q", key, version, have.content, have.doc, v.content, v.doc)
	}
	if have.doc == nil {
		have.doc = v.doc
	}
	if have.content == "" {
		have.content = v.content
	}
}

const pastGroup = "group "

func (w *pasts) text(size int) string {
	w.n++
	return content(fmt.Sprintf("w%06d", w.n), size)
}

func (w *pasts) options(p *sim.Proc) *varve.Options {
	o := options(p.FS, p.Rand(), func() time.Time { return p.Now().Add(w.ahead) }, p.Wait)
	o.Listener = func(e varve.Event) {
		if e.Kind == varve.EventSwept || e.Kind == varve.EventEvicted || e.Kind == varve.EventAdopted {
			w.did[string(e.Kind)] += max(e.Count, 1)
		}
	}
	return o
}

// begin creates the store, without interruption.
func (w *pasts) begin(p *sim.Proc, how string) error {
	const from = "/from"
	o := w.options(p)
	st, err := varve.Open(ctx, from, o)
	if err != nil {
		return err
	}
	type one struct {
		id      string
		version uint64
		content string
	}
	var all []one
	for range 2 + w.rng.IntN(30) {
		for _, id := range ids {
			if w.rng.IntN(3) > 0 {
				continue
			}
			m := varve.Memory{ID: id, Content: w.text(8 + w.rng.IntN(3000)), QuickRecalScore: 0.5}
			if w.rng.IntN(5) == 0 {
				m.ExpiresAt = p.Now().Add(time.Duration(1+w.rng.IntN(40)) * time.Hour)
			}
			if m, err = st.Put(ctx, m); err != nil {
				return err
			}
			all = append(all, one{id, m.Version, m.Content})
		}
		if w.rng.IntN(6) == 0 {
			if err := st.Admin().Compact(ctx); err != nil {
				return err
			}
		}
	}
	member := ids[0]
	if _, err := st.Put(ctx, varve.Memory{ID: member, Content: w.text(50), QuickRecalScore: 0.5}); err != nil {
		return err
	}
	if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: w.text(40), MemoryIDs: []string{member}}); err != nil {
		return err
	}
	if err := st.Flush(ctx); err != nil {
		return err
	}
	w.dir = "/" + how
	var hole, holeEnd uint64
	if how == "restored" {
		if _, err := st.Backup(ctx, "/backup", varve.BackupOptions{}); err != nil {
			return err
		}
	}
	if err := st.Close(); err != nil {
		return err
	}
	switch how {
	case "restored":
		_, err = varve.Restore(ctx, "/backup", w.dir, &varve.RestoreOptions{Options: o})
	case "cloned":
		for _, name := range []string{"memories", "assemblies", "config.json"} {
			err = errors.Join(err, cloneFiles(p.FS, filepath.Join(from, name), filepath.Join(w.dir, name)))
		}
		err = errors.Join(err, p.FS.SyncDir(w.dir), p.FS.SyncDir("/"))
	case "repaired":
		w.dir, w.gaps = from, true
		for err = fs.ErrNotExist; errors.Is(err, fs.ErrNotExist); { // what is in the archive already
			hole, holeEnd, err = w.punch(p, all[w.rng.IntN(len(all))].version)
		}
		if err == nil {
			err = w.repair(p, o)
		}
	}
	if err != nil {
		return err
	}
	if st, err = varve.Open(ctx, w.dir, o); err != nil {
		return err
	}
	w.all(st, true)
	if how == "repaired" {
		for _, v := range all {
			// No frame is longer. A version of which only the number has changed is in its file. The
			// frame behind a damaged start of a segment is sacrificed for the gap.
			touched := v.version < holeEnd && v.version+6000 > hole
			if start := v.version / (64 << 10) * (64 << 10); hole < start+segment.StartSize && holeEnd > start {
				touched = touched || v.version < start+segment.StartSize+segment.MinGap
			}
			if have := w.known[v.id][v.version]; have == nil && !touched {
				w.bad("%.20q: version %d is lost, which does not touch the hole from %d to %d", v.id, v.version, hole, holeEnd)
			} else if have != nil {
				w.was(v.id, v.version, pastVersion{content: v.content})
			}
		}
	}
	if w.rng.IntN(2) == 0 {
		c := st.Admin().Config()
		c.MaxMemories, c.AtLimit = int64(4+w.rng.IntN(5)), varve.AtLimitEvictOldest
		if err := st.Admin().SetConfig(c); err != nil {
			return err
		}
	}
	return st.Close()
}

// cloneFiles copies names and bytes, as git does, but no times.
func cloneFiles(fsys vfs.FS, from, to string) error {
	b, err := vfs.ReadFile(fsys, from, 1<<30)
	if err == nil {
		f, err := vfs.CreateNew(fsys, to, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(b, 0)
		return errors.Join(err, f.Sync(), f.Close())
	}
	names, derr := fsys.ReadDir(from)
	if derr != nil {
		if errors.Is(derr, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, derr)
	}
	for _, dir := range []string{filepath.Dir(to), to} {
		if err := fsys.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, name := range names {
		if err := cloneFiles(fsys, filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return fsys.SyncDir(to)
}

// punch makes a hole in a segment, near a version, and returns its bounds.
func (w *pasts) punch(p *sim.Proc, near uint64) (from, to uint64, err error) {
	geo := segment.Geometry{Size: 64 << 10}
	number := geo.Number(near)
	f, err := p.FS.OpenFile(filepath.Join(w.dir, "wal", segment.Name(number)), os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	at, size := geo.Offset(near), int64(1+w.rng.IntN(5000))
	at = max(0, at-int64(w.rng.IntN(1000)))
	b := make([]byte, min(size, 64<<10-at))
	if w.rng.IntN(2) == 0 {
		for i := range b {
			b[i] = byte(w.rng.Uint32())
		}
	}
	w.did["hole"]++
	_, err = f.WriteAt(b, at)
	from = geo.Start(number) + uint64(at)
	return from, from + uint64(len(b)), errors.Join(err, f.Sync(), f.Close())
}

func (w *pasts) repair(p *sim.Proc, o *varve.Options) error {
	for range 3 {
		plan, err := varve.PlanRepair(ctx, w.dir, o, varve.VerifyOptions{})
		if err != nil {
			return err
		}
		if len(plan.Actions) == 0 {
			return nil
		}
		rep, err := plan.Apply(ctx)
		if err != nil {
			return err
		}
		for _, d := range rep.Done {
			if d.Err != nil {
				return fmt.Errorf("%v: %w", d.Action, d.Err)
			}
			w.did["repaired"]++
		}
	}
	return nil
}

// all records all memories with all that the history has of them, which may not become less.
func (w *pasts) all(st *varve.Store, files bool) map[string]map[uint64]varve.Version {
	have := map[string]map[uint64]varve.Version{}
	look := func(key string, v varve.Version, err error) {
		var gap *errs.GapError
		switch {
		case errors.Is(err, varve.ErrNotFound), w.gaps && (errors.As(err, &gap) || errors.Is(err, varve.ErrTruncated)):
		case err != nil:
			w.bad("history of %.20q: %v", key, err)
		case !v.Deleted:
			if have[key] == nil {
				have[key] = map[uint64]varve.Version{}
			}
			have[key][v.LSN] = v
			w.was(key, v.LSN, pastVersion{doc: v.Document, file: files || v.FromFile})
		}
	}
	for _, id := range w.ids() {
		for v, err := range st.History(ctx, id) {
			look(id, v, err)
		}
	}
	for v, err := range st.Assemblies().History(ctx, "g") {
		look(pastGroup+"g", v, err)
	}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			w.bad("list: %v", err)
		} else if v, ok := have[m.ID][m.Version]; !ok && !told(have[m.ID], m.Version, m.Content) || ok && !bytes.Contains(v.Document, []byte(tokenOf(m.Content))) {
			w.bad("%.20q: history lacks version %d, which is current: it has %v", m.ID, m.Version, slices.Sorted(maps.Keys(have[m.ID])))
		}
	}
	return have
}

// told reports whether the number of a version was invented, by an index that was rebuilt from the
// files, and the history has the content under its earlier number.
func told(have map[uint64]varve.Version, version uint64, content string) bool {
	if version&7 == 0 || content == "" {
		return false
	}
	for _, v := range have {
		if bytes.Contains(v.Document, []byte(tokenOf(content))) {
			return true
		}
	}
	return false
}

func (w *pasts) ids() (list []string) {
	list = append(list, ids...)
	for i := range 8 {
		list = append(list, fmt.Sprint("more", i))
	}
	return list
}

// look checks every version that was ever current.
func (w *pasts) look(p *sim.Proc) {
	st, err := varve.Open(ctx, w.dir, w.options(p))
	if err != nil {
		w.bad("the store does not open: %v", err)
		return
	}
	before := map[string][]uint64{}
	for key, versions := range w.known {
		before[key] = slices.Sorted(maps.Keys(versions))
	}
	have := w.all(st, false)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		for i, version := range before[key] {
			want := w.known[key][version]
			v, ok := have[key][version]
			if !ok && told(have[key], version, want.content) {
				continue
			}
			if !ok {
				w.bad("%.20q: version %d is lost: %.60q (file alone: %v); there are %v", key, version, want.content, want.file, slices.Sorted(maps.Keys(have[key])))
				continue
			}
			if want.content != "" {
				if m, err := v.Decode(); err != nil || m.Content != want.content {
					w.bad("%.20q: version %d is not what was put: %v", key, version, err)
				}
			}
			w.did["looked for"]++
			if v.Kept {
				w.did["kept"]++
			}
			if !v.Kept && i%4 != 0 {
				continue
			}
			at, id := st.GetAt, key
			if name, ok := strings.CutPrefix(key, pastGroup); ok {
				at, id = st.Assemblies().GetAt, name
			}
			if got, err := at(ctx, id, version); err != nil || sha256.Sum256(got.Document) != v.ContentHash {
				w.bad("%.20q: version %d is in the history, and read it is %.60q, %v", key, version, got.Document, err)
			}
		}
	}
	if err := st.Close(); err != nil {
		w.bad("close: %v", err)
	}
}

func (w *pasts) work(p *sim.Proc) {
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 1))
	for w.acts > 0 {
		st, err := varve.Open(ctx, w.dir, w.options(p))
		if err != nil {
			w.bad("%s: open: %v", p.Name, err)
			return
		}
		for n := 5 + rng.IntN(40); n > 0 && w.acts > 0; n-- {
			w.acts--
			if err := w.step(p, st, rng); err != nil && !isRefusal(err) {
				w.bad("%s: %v", p.Name, err)
			}
		}
		if err := st.Close(); err != nil {
			w.bad("%s: close: %v", p.Name, err)
		}
	}
}

// done counts what was done.
func (w *pasts) done(what string, err error) error {
	if err == nil {
		w.did[what]++
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// latest returns the number of the newest version that an edit by hand cannot have removed.
func latest(versions map[uint64]*pastVersion) (newest uint64) {
	for v, of := range versions {
		if !of.file {
			newest = max(newest, v)
		}
	}
	return newest
}

func (w *pasts) step(p *sim.Proc, st *varve.Store, rng *rand.Rand) error {
	all := w.ids()
	id := all[rng.IntN(len(all))]
	switch rng.IntN(16) {
	case 0, 1, 2, 3, 4:
		m := varve.Memory{ID: id, Content: w.text(8 + rng.IntN(3000)), QuickRecalScore: 0.5}
		if rng.IntN(5) == 0 {
			m.ExpiresAt = p.Now().Add(w.ahead + time.Duration(1+rng.IntN(90))*time.Minute)
		}
		m, err := st.Put(ctx, m)
		if err == nil {
			w.was(id, m.Version, pastVersion{content: m.Content})
			v, err := st.GetAt(ctx, id, m.Version)
			if err != nil {
				w.bad("%.20q: version %d was put, and cannot be read: %v", id, m.Version, err)
			}
			w.was(id, m.Version, pastVersion{doc: v.Document})
		}
		return w.done("put", err)
	case 5, 6:
		return w.done("delete", st.Delete(ctx, id))
	case 7, 8:
		return w.edit(p, filepath.Join(w.dir, "memories", jsondoc.FileName(id)), id, rng)
	case 9:
		return w.done("flush", st.Admin().Compact(ctx))
	case 10:
		m, err := st.Undelete(ctx, id)
		if err == nil {
			w.was(id, m.Version, pastVersion{content: m.Content})
		}
		if _, ok := errors.AsType[*varve.NoVersionError](err); ok {
			return nil
		}
		if gap, ok := errors.AsType[*errs.GapError](err); ok && gap.To > latest(w.known[id]) {
			return nil // whether this id, or later ones, ever existed is unknown
		}
		return w.done("undelete", err)
	case 11:
		versions := slices.Sorted(maps.Keys(w.known[id]))
		if len(versions) == 0 {
			return nil
		}
		version := versions[rng.IntN(len(versions))]
		want := w.known[id][version]
		m, err := st.Revert(ctx, id, version)
		if err == nil {
			w.was(id, m.Version, pastVersion{content: m.Content})
		}
		if _, ok := errors.AsType[*varve.NoVersionError](err); ok && want.file {
			return nil // an edit by hand may have removed it meanwhile; otherwise look reports it
		}
		return w.done("revert", err)
	case 12:
		_, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: w.text(40), MemoryIDs: []string{id}})
		return w.done("assembly", err)
	default:
		m, err := st.Get(ctx, id)
		if err == nil {
			w.was(id, m.Version, pastVersion{content: m.Content})
		}
		return w.done("get", err)
	}
}

// edit replaces a file by hand. A version that only this file had is lost with it: it was never seen
// elsewhere.
func (w *pasts) edit(p *sim.Proc, path, id string, rng *rand.Rand) error {
	b, err := vfs.ReadFile(p.FS, path, 1<<30)
	if err != nil {
		return ignore(err)
	}
	m := contentMember.FindSubmatchIndex(b)
	if m == nil {
		return nil
	}
	text := slices.Concat(b[:m[0]], fmt.Appendf(nil, `"content": "%s"`, w.text(8+rng.IntN(2000))), b[m[1]:])
	temp := fmt.Sprintf("/edit-%d", w.n)
	f, err := vfs.CreateNew(p.FS, temp, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	now, err := vfs.ReadFile(p.FS, path, 1<<30)
	if err != nil && ignore(err) != nil {
		return err
	}
	for version, v := range w.known[id] {
		if v.file && bytes.Equal(v.doc, now) {
			w.did["taken by hand"]++
			delete(w.known[id], version)
			if w.taken[id] == nil {
				w.taken[id] = map[uint64]bool{}
			}
			w.taken[id][version] = true
		}
	}
	if err := p.FS.Rename(temp, path); err != nil {
		return ignore(err)
	}
	w.did["edit"]++
	return p.FS.SyncDir(filepath.Dir(path))
}

func (w *pasts) run(how string) error {
	if w.rng.IntN(3) == 0 {
		w.s.Disk().SetLacks(crash.Lacks{Exchange: w.rng.IntN(2) == 0, Link: w.rng.IntN(2) == 0, Lease: w.rng.IntN(2) == 0, Barrier: w.rng.IntN(2) == 0})
	}
	var err error
	w.s.Process("begin", func(p *sim.Proc) { err = w.begin(p, how) })
	if rerr := w.s.Run(); rerr != nil || err != nil {
		return fmt.Errorf("the beginning: %w", errors.Join(rerr, err))
	}
	w.s.OnKill = func(*sim.Proc) {
		w.did["kill"]++
		w.s.Process("again", w.work)
	}
	for boot := range 1 + w.rng.IntN(4) {
		w.acts = 30 + w.rng.IntN(150)
		w.ahead += []time.Duration{0, 50 * time.Minute, 3 * time.Hour, 40 * 24 * time.Hour}[w.rng.IntN(4)]
		w.s.Odds = sim.Odds{Switch: 2 + w.rng.IntN(40), Stop: 3000, Kill: []int{0, 4000, 1500}[w.rng.IntN(3)], Cut: []int{0, 1000, 5000}[w.rng.IntN(3)]}
		for i := range 1 + w.rng.IntN(2) {
			w.s.Process(fmt.Sprint("p", i), w.work)
		}
		if err := w.s.Run(); err != nil {
			return fmt.Errorf("boot %d: %w", boot, err)
		}
		if !w.s.WasCut() {
			w.s.Cut(w.s.Patterns[w.rng.IntN(len(w.s.Patterns))])
		}
		w.did["cut"]++
		w.s.Odds = sim.Odds{Cut: []int{0, 1500}[w.rng.IntN(2)]} // the recovery as well
		for range 5 {
			w.s.Process("look", w.look)
			if err := w.s.Run(); err != nil {
				return fmt.Errorf("recovery of boot %d: %w", boot, err)
			}
			if !w.s.WasCut() {
				break
			}
			w.s.Odds = sim.Odds{}
		}
		if len(w.wrong) > 0 {
			return fmt.Errorf("boot %d:\n%s", boot, joinWrong(w.wrong))
		}
	}
	return nil
}

func simulatePast(t *testing.T, seeds int, how string) {
	simulateSeeds(t, seeds, func(seed uint64) (*sim.Sim, map[string]int, func() error) {
		w := &pasts{s: sim.New(seed), rng: rand.New(rand.NewPCG(seed, 55)), did: map[string]int{}, known: map[string]map[uint64]*pastVersion{}, taken: map[string]map[uint64]bool{}}
		return w.s, w.did, func() error { return w.run(how) }
	})
}

// TestSimPast begins with a store whose log lacks what its files have, and changes it in every way, by
// processes that are killed and cut: each version that was ever current stays in its history.
func TestSimPastRestored(t *testing.T) { simulatePast(t, 60, "restored") }

func TestSimPastCloned(t *testing.T) { simulatePast(t, 60, "cloned") }

func TestSimPastRepaired(t *testing.T) { simulatePast(t, 60, "repaired") }
