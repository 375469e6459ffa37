package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// keeper is a process that maintains a store while others write to it: it makes backups and restores
// them, damages files and repairs them, and moves the store. If it is killed, another one takes over.
type keeper struct {
	w   *world
	p   *sim.Proc
	rng *rand.Rand
	o   *varve.Options
}

// upkeep has what keepers have made, as the oracle knows it, and counts.
type upkeep struct {
	backups, restored []*copied
	target            string // of a migration that may have happened
	moved             bool   // one was acknowledged, or seen to have happened
	made              int    // names given away
	did               map[string]int
	restores          bool // a file that is removed comes back: adopt_deletions is off
}

// copied is a backup, or a store that was restored.
type copied struct {
	path       string
	start, end int // it is the state of a moment between these ticks
	version    uint64
	acked      bool
}

// The two places between which a store is moved.
var places = []string{dir, "/moved"}

func (w *world) other() string {
	if w.h.dir == places[0] {
		return places[1]
	}
	return places[0]
}

// open opens the store where it is now.
func (w *world) open(o *varve.Options) (*varve.Store, error) {
	for {
		st, err := varve.Open(ctx, w.h.dir, o)
		var moved *varve.MovedError
		var early *repair.UnfinishedError
		switch {
		case errors.As(err, &moved):
			w.h.dir = moved.To
			w.movedOn()
		case errors.As(err, &early): // the store has moved back by now, and is opened there again
			w.h.dir = early.From
		default:
			return st, err
		}
	}
}

func (w *world) movedOn() {
	if w.keeping != nil {
		w.keeping.moved = true
	}
}

// keep does maintenance as long as others work, and once more when they have ended.
func (w *world) keep(p *sim.Proc) {
	k := &keeper{w: w, p: p, rng: rand.New(rand.NewPCG(w.rng.Uint64(), 3)), o: w.options(p)}
	for busy := true; busy; {
		p.Sleep(time.Duration(k.rng.IntN(20000)) * time.Microsecond)
		busy = w.acts > 0
		switch n := k.rng.IntN(8); {
		case n < 2:
			k.backup()
		case n == 2 && len(w.keeping.backups) > 0:
			k.restore(w.keeping.backups[k.rng.IntN(len(w.keeping.backups))])
		case n < 5:
			k.migrate()
		default:
			for range k.rng.IntN(4) {
				k.spoil()
			}
			if k.rng.IntN(2) == 0 {
				k.repairOpen()
			} else {
				k.repair(false)
			}
		}
	}
}

// mostCopies bounds how many copies of each kind a seed makes: every check reads all of them.
const mostCopies = 4

func (k *keeper) fresh(what string) string {
	k.w.keeping.made++
	return fmt.Sprintf("/%s%d", what, k.w.keeping.made)
}

// refused reports whether err is one of the errors that are right at this moment.
func (k *keeper) refused(what string, err error, known ...error) bool {
	if err == nil {
		k.w.keeping.did[what]++
		return false
	}
	for _, e := range known {
		if errors.Is(err, e) && (e != varve.ErrNoStore || !k.w.h.begun()) {
			k.w.keeping.did[what+" refused"]++
			return true
		}
	}
	if errors.Is(err, varve.ErrCorrupt) && len(k.w.h.harmed) > 0 {
		k.w.keeping.did[what+" of a spoilt store"]++
		return true
	}
	k.w.h.bad("%s: %s: %v", k.p.Name, what, err)
	return true
}

func (k *keeper) backup() {
	if len(k.w.keeping.backups) == mostCopies {
		return
	}
	st, err := k.w.open(k.o)
	if k.refused("open", err) {
		return
	}
	b := &copied{path: k.fresh("backup"), start: k.w.h.now(), end: never}
	k.w.keeping.backups = append(k.w.keeping.backups, b)
	_, err = st.Backup(ctx, b.path, varve.BackupOptions{})
	// ErrLimit: more log piled up meanwhile than its budget allows.
	if !k.refused("backup", err, varve.ErrLimit) {
		b.acked, b.end = true, k.w.h.now()
	}
	k.refused("close", st.Close())
}

// restore makes a store from a backup, as of its end or as of a version that a caller was told.
func (k *keeper) restore(b *copied) {
	if !b.acked || len(k.w.keeping.restored) == mostCopies {
		return
	}
	info, err := backup.ReadInfo(k.p.FS, b.path)
	if k.refused("reading a backup", err) {
		return
	}
	r := &copied{path: k.fresh("restored"), start: b.start, end: b.end}
	o := &varve.RestoreOptions{Options: k.o}
	if list := k.w.h.told(info.First.LSN, info.Last.LSN); len(list) > 0 && k.rng.IntN(2) == 0 {
		r.version = list[k.rng.IntN(len(list))]
		o.Version = r.version
	}
	k.w.keeping.restored = append(k.w.keeping.restored, r)
	_, err = varve.Restore(ctx, b.path, r.path, o)
	if !k.refused("restore", err) {
		r.acked = true
		k.w.look2(k.p, r)
	}
}

// migrate moves the store to the other place, as far as other processes permit.
func (k *keeper) migrate() {
	o := &varve.MigrateOptions{Options: k.o, Switch: k.rng.IntN(4) > 0, RemoveSource: true}
	from, to := k.w.h.dir, k.w.other()
	_, err := k.p.FS.Stat(filepath.Join(to, "moved.json"))
	if names, _ := k.p.FS.ReadDir(to); err == nil && len(names) > 1 {
		from, to = to, from // a move that was interrupted while emptying the old place
	}
	o.RemoveSource = o.Switch
	k.w.keeping.target = to
	for range 1 + k.rng.IntN(3) {
		rep, err := varve.Migrate(ctx, from, to, o)
		if rep.Switched {
			k.w.h.dir, k.w.keeping.moved = to, true // reported before the migration, perhaps, failed
		}
		// ErrLocked: others have it open. MovedError: another process completed the move.
		if !k.refused("migrate", err, varve.ErrLocked, varve.ErrMoved, varve.ErrNoStore) {
			if o.Switch {
				k.w.keeping.did["switch"]++
				k.w.h.dir, k.w.keeping.moved, k.w.keeping.target = to, true, ""
			}
			return
		}
		if !errors.Is(err, varve.ErrLocked) {
			return
		}
		k.p.Sleep(time.Duration(k.rng.IntN(5000)) * time.Microsecond)
	}
}

// begun reports whether a copy that was not acknowledged may still be in progress.
func (h *history) begun() bool {
	return slices.ContainsFunc(h.writes, func(w *write) bool { return w.outcome == acked })
}

// restoring turns adopt_deletions off, if the world requires it and that was not done yet.
func (k *keeper) restoring() {
	path := filepath.Join(k.w.h.dir, "config.json")
	b, err := vfs.ReadFile(k.p.FS, path, 1<<20)
	if !k.w.keeping.restores || err != nil || bytes.Contains(b, []byte("adopt_deletions")) {
		return
	}
	b = bytes.Replace(b, []byte("{"), []byte(`{"adopt_deletions": false,`), 1)
	if err := errors.Join(k.place(path, b, k.p.Now()), k.p.FS.SyncDir(k.w.h.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.w.h.bad("%s: writing %s: %v", k.p.Name, path, err)
	}
}

// spoil removes a memory's file, or makes it invalid. A document that log or archive have must return;
// but a removed file may be treated as a deletion by hand, unless the store restores such files.
func (k *keeper) spoil() {
	k.restoring()
	id := ids[k.rng.IntN(len(ids))]
	path := filepath.Join(k.w.h.dir, "memories", jsondoc.FileName(id))
	b, err := vfs.ReadFile(k.p.FS, path, 1<<30)
	info, serr := k.p.FS.Stat(path)
	if err != nil || serr != nil || len(b) < 40 {
		return
	}
	k.w.h.harm(id)
	k.w.keeping.did["spoilt"]++
	rot := bytes.Clone(b)
	rot[len(b)/2] = 1 // no JSON has this
	switch k.rng.IntN(5) {
	case 0:
		if k.w.keeping.restores {
			err = k.p.FS.Remove(path)
			break
		}
		w := k.w.h.begin(&write{id: id, del: true, hand: true})
		err = k.p.FS.Remove(path)
		w.end = k.w.h.now()
	case 1:
		err = k.place(path, rot, info.Mtime) // rot: size and time are those of before
	case 2:
		err = k.place(path, b[:len(b)/2], k.p.Now())
	case 3:
		err = k.place(path, nil, k.p.Now())
	case 4:
		err = k.place(filepath.Join(k.w.h.dir, "memories", "junk.json"), []byte("{"), k.p.Now())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.w.h.bad("%s: spoiling %s: %v", k.p.Name, path, err)
	}
}

// place puts a file into its place in one step.
func (k *keeper) place(path string, data []byte, mtime time.Time) error {
	temp := k.fresh("spoilt")
	f, err := k.p.FS.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err = errors.Join(err, f.SetMtime(mtime), f.Sync(), f.Close()); err != nil {
		return err
	}
	return k.p.FS.Rename(temp, path)
}

// repair plans and applies a repair beside other processes. In an undamaged store it must find nothing,
// and afterwards nothing must be left. settled: the remains of an unclean end were flushed, so
// everything is verified.
func (k *keeper) repair(settled bool) {
	made := k.w.h.begun()
	sound := len(k.w.h.harmed) == 0 && made
	plan, err := varve.PlanRepair(ctx, k.w.h.dir, k.o, varve.VerifyOptions{})
	var moved *varve.MovedError
	if errors.As(err, &moved) {
		k.w.h.dir, k.w.keeping.moved = moved.To, true
		return
	}
	if k.refused("plan", err, varve.ErrNoStore) {
		return
	}
	if sound && plan.Worst > varve.SeverityInfo {
		for _, a := range plan.Actions {
			if a.Do == repair.NewMarks && len(a.Findings) == 1 && k.w.halfWritten(a.Findings[0]) {
				k.w.keeping.did["slot half written"]++
				continue
			}
			k.w.h.bad("%s: repair would change a sound store: %v: %v", k.p.Name, a, a.Findings)
		}
	}
	rep, err := plan.Apply(ctx)
	if k.refused("repair", err, varve.ErrLocked, varve.ErrMoved) {
		return
	}
	for _, d := range rep.Done {
		if d.Err != nil && !errors.Is(d.Err, varve.ErrConflict) {
			k.w.h.bad("%s: repair: %v: %v", k.p.Name, d.Action, d.Err)
		}
		if d.Loses != "" {
			k.w.h.bad("%s: repair gives up what the log has: %v", k.p.Name, d.Action)
		}
		k.w.keeping.did["healed"]++
	}
	if len(rep.Waiting) > 0 {
		return
	}
	for _, f := range rep.Remaining {
		if f.Severity > varve.SeverityInfo && made && !k.w.halfWritten(f) {
			k.w.h.bad("%s: repair leaves %v", k.p.Name, f)
		}
	}
	if settled {
		k.w.h.harmed = nil
	}
}

// halfWritten reports whether a finding is a slot of the checkpoint whose writer was killed. Until the
// slot is written again it is reported, and repaired from the other one.
func (w *world) halfWritten(f repair.Finding) bool {
	return w.kill > 0 && f.Kind == repair.CheckpointSlot && f.Heals == repair.ByCheckpoint && f.Remarks == 0 &&
		(f.Offset == 0 || f.Offset == wal.SlotSize)
}

// repairOpen is repair while this process also has the store open.
func (k *keeper) repairOpen() {
	st, err := k.w.open(k.o)
	if k.refused("open", err) {
		return
	}
	if !k.refused("flush", st.Admin().Compact(ctx)) {
		k.repair(true)
	}
	k.refused("close", st.Close())
}

// look2 checks a restored store.
func (w *world) look2(p *sim.Proc, r *copied) {
	o := w.options(p)
	o.MustExist = true
	st, err := varve.Open(ctx, r.path, o)
	if err != nil {
		w.h.bad("%s: %s: %v", p.Name, r.path, err)
		return
	}
	w.h.restored(st, r, p.Now)
	if err := st.Close(); err != nil {
		w.h.bad("%s: closing %s: %v", p.Name, r.path, err)
	}
}

// lookAround checks, when all is quiet, where the store is, and that everything that keepers were told
// they had made exists.
func (w *world) lookAround(p *sim.Proc) {
	var found []string
	for _, place := range places {
		o := w.options(p)
		o.ReadOnly, o.MustExist = true, true
		st, err := varve.Open(ctx, place, o)
		switch {
		case err == nil:
			found = append(found, place)
			if err := st.Close(); err != nil {
				w.h.bad("closing %s: %v", place, err)
			}
		case !errors.Is(err, varve.ErrMoved) && !errors.Is(err, varve.ErrNoStore):
			w.h.bad("%s: %v", place, err)
		}
	}
	k := w.keeping
	switch {
	case len(found) > 1:
		w.h.bad("one store is in two places: %v", found)
	case len(found) == 0 && k.moved:
		w.h.bad("the store is in neither place")
	case len(found) == 1 && found[0] != w.h.dir && found[0] != k.target:
		w.h.bad("the store is in %s; it was moved to %s", found[0], w.h.dir)
	case len(found) == 1:
		k.moved = k.moved || found[0] != w.h.dir
		w.h.dir = found[0]
	}
	k.target = ""
	k.backups = slices.DeleteFunc(k.backups, func(b *copied) bool { return !w.there(p, b) })
	for _, b := range k.backups {
		if _, err := backup.Check(ctx, p.FS, b.path, nil, nil); err != nil {
			w.h.bad("a folder that is no whole backup: %v", err)
		}
	}
	k.restored = slices.DeleteFunc(k.restored, func(r *copied) bool { return !w.there(p, r) })
	for _, r := range k.restored {
		w.look2(p, r)
	}
	if len(w.h.harmed) > 0 {
		k := &keeper{w: w, p: p, o: w.options(p)}
		st, err := w.open(k.o)
		if k.refused("open", err) || k.refused("flush", st.Admin().Compact(ctx)) || k.refused("close", st.Close()) {
			return
		}
		k.repair(true)
	}
}

// there reports whether a copy that has its final name is complete, acknowledged or not.
func (w *world) there(p *sim.Proc, c *copied) bool {
	_, err := p.FS.Stat(c.path)
	if err != nil && c.acked {
		w.h.bad("%s was acknowledged, and is gone: %v", c.path, err)
	}
	if err != nil {
		return false
	}
	if !c.acked {
		c.acked, c.end = true, min(c.end, w.h.now())
	}
	return true
}

func keeping(w *world) { w.keeping = &upkeep{did: map[string]int{}} }

// TestSimUpkeep: a process backs up, restores, damages, repairs and moves a store that others use; all
// of them are stopped, killed and cut, recoveries too.
func TestSimUpkeep(t *testing.T) { simulate(t, 2, 20, keeping) }

func keepingLacking(w *world) {
	lacking(w)
	w.archive = 0 // what is repaired has its copy there
	keeping(w)
	w.keeping.restores = true
}

func TestSimUpkeepLacking(t *testing.T) { simulate(t, 2, 10, keepingLacking) }
