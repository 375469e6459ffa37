package flush

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/diskspace"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/rebuild"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/wal"
)

// Flusher writes durable log entries to document files and the index. One process, the holder of flush.lock, does this
// for all processes.
type Flusher struct {
	engine    *engine.Engine
	vectors   *vectors.Vectors
	views     *views.Views
	rebuilder *rebuild.Maker

	host Host

	files   *docfile.Flusher
	workers int
	kick    chan struct{}
	urge    chan struct{} // signals that writers are slowed, and so ends a rest
	loans   chan loan     // requests to use flush.lock while work runs beside rounds
	slowed  slowed
	yielded yielded
	made    time.Time
	// time before which writing the index is not tried again after a failure, in nanoseconds since made
	indexAfter atomic.Int64
	unflushed  atomic.Int64 // changes of this process since the last round
	// commits of this process since the last round, if rounds are counted in commits: System.Rounds
	commits atomic.Int64
	// when this process last recorded that it is alive, if there is no background goroutine
	lastBeat atomic.Int64
	More     atomic.Bool          // the last round left something to do
	Quiet    atomic.Bool          // no process wrote during the last background round
	owes     atomic.Bool          // a round has left an index that is due to the background goroutine
	uptime   func() time.Duration // clock of the rests and turns that all processes share; nil: there are neither
	refusals refusals
	rescuing sync.Mutex // mutex that Rescue and Close hold

	inflate   bool       // write all documents to files, however highly they are compressed in the log
	unpacking sync.Mutex // guards unpacksTo
	unpacksTo wal.LSN    // log position: the documents of all entries below it may be written to files

	// Guarded by flush.lock.
	backupAt  time.Time      // time of the newest index backup
	leftovers bool           // tmp/ may have files of killed processes
	aside     []docfile.Edit // files that this round, and earlier failed rounds, have moved to quarantine
	// a round may write the index and update the views in the background, while further rounds run
	beside     bool
	following  *following   // the background work that is running; nil: none
	leaves     bool         // this round leaves index and views to the background goroutine
	wordsDue   bool         // the last background round has left changes for the views to the next one: see mostAtOnce
	wordsLeft  bool         // this close leaves the words of its changes to the next process
	indexErr   error        // the reason why the index could not be written
	indexFails int          // number of consecutive failures to write the index
	dooming    bool         // this round overwrites the files of the index that it replaces: see flushOverwriting
	Unlinked   []string     // files of the index that were not overwritten since a purge failed
	moved      uint64       // bytes of log that rounds of this process have written to files
	earlier    atomic.Bool  // no purge was announced when this round began
	failed     atomic.Int64 // number of consecutive failed rounds
	begun      wal.LSN      // log position: this round has written no file for a change at or after it
	reached    wal.LSN      // the same position for the failed rounds, if all of them were canceled; otherwise 0
	// log position: every file that was written before the store became distrusted has a version below this position
	suspect wal.LSN
	trusts  bool // after this round, all document files are trusted
	Lagging lag

	// modification times of the folders whose names were compared with the index, by kind: see Compared
	compared [wal.Folders]atomic.Int64
	// For document folders that other programs have changed: their times in the checkpoint. 0 for other folders.
	uncompared [wal.Folders]int64
}

// Host has the functions of higher packages that a flusher calls: functions that decide about edited files, that delete
// memories by age and limits, and that keep working memory. The files of working memory contain changes that the log
// has released, so a round writes these files before it sets the checkpoint.
type Host interface {
	// JudgeAside decides, for each file that a round has moved to quarantine, whether it is an edit that must be
	// adopted.
	JudgeAside(ctx context.Context, held *wal.Held, aside []docfile.Edit)
	// Upkeep is called every few seconds, for deletions by age and limits.
	Upkeep(ctx context.Context)
	// CheckParked checks replaced document files into which an editor may still save.
	CheckParked(ctx context.Context)
	// PutScopes writes the files of working-memory scopes, durably. distrusted means that the existing files
	// may have any contents. spares, if not nil, is called for a scope that cannot be written to a file: if it
	// returns true, PutScopes continues with the others.
	PutScopes(ctx context.Context, keys []string, distrusted bool, spares func(key string, err error) bool) error
	// MayLag reports whether the file of a working-memory scope need not be written for now, and returns the
	// first entry that the file lacks.
	MayLag(ctx context.Context, key string, flushed wal.LSN) (first wal.LSN, ok bool)
	// OursScope reports whether data returns the document of the working-memory scope key as a store wrote it,
	// without later edits. If minLSN is not 0, this store must have written the document at log position minLSN
	// or later; an earlier document was restored by another program.
	OursScope(key string, minLSN wal.LSN, data func() ([]byte, error)) bool
}

// flushWorkers is the number of goroutines that put files in place. More than two were not faster on any file system
// that was tested.
const flushWorkers = 2

// New returns a flusher for a store that is being opened. The store's log is not open yet. rebuilder rebuilds an index
// that is damaged or missing. If inflate is true, all documents are written to files, even those that are highly
// compressed in the log.
func New(eng *engine.Engine, vs *vectors.Vectors, all *views.Views, rebuilder *rebuild.Maker, host Host,
	inflate bool) (*Flusher, error) {
	fl := &Flusher{engine: eng, vectors: vs, views: all, host: host, rebuilder: rebuilder, inflate: inflate}
	fl.workers, fl.made = flushWorkers, time.Now()
	if eng.Env().System.Inline {
		fl.workers = 1
	}
	fl.kick, fl.urge, fl.loans = make(chan struct{}, 1), make(chan struct{}, 1), make(chan loan)
	if fl.uptime = eng.Env().System.Uptime; fl.uptime == nil && !eng.Env().System.Inline {
		fl.uptime = vfs.Uptime()
	}
	var err error
	fl.files, err = docfile.NewFlusher(docfile.Options{
		Layout: eng.Layout(), Token: eng.Token(), Clock: eng.Env().Clock, Unnamed: eng.Env().System.Unnamed,
		Workers: fl.workers, Limit: places.StoredMost, TempFiles: eng.Env().System.TempFiles,
		Keeps: fl.keepsDisplaced, Leaves: fl.purgesIn, Places: fl.places, InPlace: fl.inPlace,
	})
	return fl, err
}

// Leftovers makes the first round search tmp/ for files of killed processes.
func (fl *Flusher) Leftovers() { fl.leftovers = true }

// Files returns the docfile.Flusher that puts documents in place.
func (fl *Flusher) Files() *docfile.Flusher { return fl.files }

// Inflates reports whether all documents are written to files, even those that are highly compressed in the log.
func (fl *Flusher) Inflates() bool { return fl.inflate }

// Close overwrites and removes the replaced files that the flusher keeps in tmp/ for reuse. If the store's folder was
// replaced, it does nothing, because tmp/ may belong to another process.
func (f *Flusher) Close() error {
	f.rescuing.Lock() // the removal of the log may be noticed only now
	defer f.rescuing.Unlock()
	if f.files == nil || f.engine.Log().Folder().Replaced() != nil { // tmp/ may belong to another process
		return nil
	}
	return f.files.Close()
}

// Wake counts n committed changes, and starts a round when enough changes have been counted.
func (fl *Flusher) Wake(n int) {
	before := fl.unflushed.Add(int64(n)) - int64(n)
	threshold := int64(fl.engine.Settings().Now().FlushAfter())
	if before < threshold && before+int64(n) >= threshold {
		select {
		case fl.kick <- struct{}{}:
		default:
		}
	}
}

// Merge determines whether and how a round writes the index.
type Merge int

const (
	MergeWhenDue Merge = iota
	MergeFlush         // write the changes, in a delta or, if that is due, a new base
	MergeAlways        // write everything into a new base
	MergeFiles         // as MergeWhenDue, and all changes are written to files, without waiting
	mergeClosing       // the round of a store that closes: leaves little for the next open to replay
	mergeEnding        // as mergeClosing, for a process that must end soon
)

// Flush waits for flush.lock, writes all durable log entries to document files, and writes the index as m determines.
func (fl *Flusher) Flush(ctx context.Context, m Merge) error {
	held, err := fl.engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	return fl.engine.Log().Folder().Explain(fl.FlushLocked(ctx, held, m))
}

// FlushLocked runs a flush round for the holder of flush.lock. During a purge, or after an interrupted one, it
// overwrites the index files that the round replaces.
func (fl *Flusher) FlushLocked(ctx context.Context, held *wal.Held, m Merge) error {
	ctx = held.In(Unpaced(ctx))
	fl.lookForPurge(held)
	// Read once: a purge that is announced after this does not matter, see keepsDisplaced.
	purging := fl.engine.Log().Purges().Running()
	fl.earlier.Store(!purging)
	defer fl.earlier.Store(false)
	overwrites := purging || fl.engine.Log().Purges().Failed()
	if overwrites || fl.engine.Log().Notes().Distrusted() || fl.engine.Log().Notes().Abandoned() || fl.leftovers {
		if err := fl.followed(); err != nil { // the code below removes files that the work beside rounds uses
			return err
		}
	}
	timed := fl.timed()
	round := fl.FlushRound
	if fl.following == nil { // nothing follows an index while the views' files are kept
		views.Keep(fl.views, held, nil) // unless this round also finds a file that it cannot open
	}
	if overwrites {
		round = fl.flushOverwriting
	}
	if err := round(ctx, held, m); err != nil {
		return err
	}
	return timed(held)
}

// FlushRound writes the changes since the position flushed to document files and makes these durable, then
// writes the index if that is due, and only then moves the positions in the checkpoint.
func (fl *Flusher) FlushRound(ctx context.Context, held *wal.Held, m Merge) error {
	began := fl.engine.Env().Clock()
	fl.unflushed.Store(0)
	n, spilled, err := fl.round(ctx, held, m)
	if vfs.IsDiskFull(err) && (fl.failed.CompareAndSwap(0, 1) || fl.reached > 0 && closing(m)) {
		reached := max(fl.reached, fl.begun)
		fl.reached = 0
		fl.endPurge(ctx, held, 0)                // displaced files take space
		n, spilled, err = fl.round(ctx, held, m) // repeated like a failed round: deletions first
		fl.failed.Store(0)
		fl.begun = max(fl.begun, reached)
	}
	for again := 0; again < mostRemade && (fl.remakes(ctx, err) || again == 0 && fl.repeats(ctx, err)); again++ {
		first := fl.failed.CompareAndSwap(0, 1)
		n, spilled, err = fl.round(ctx, held, m)
		if first {
			fl.failed.Store(0)
		}
	}
	if err == nil && !spilled && fl.following == nil {
		fl.updateViews(ctx, held, m)
	}
	if err == nil && m == MergeAlways {
		err = fl.vectors.Merge(ctx, held)
	}
	if err == nil && fl.following == nil && !closing(m) {
		fl.writeOffsets(held, m == MergeAlways)
	}
	if err == nil && m == MergeAlways && !spilled { // writing an index releases the log, which enforces the budget too
		if berr := fl.engine.Log().Archive().KeepBudget(held); berr != nil {
			fl.engine.Env().Logger.Warn("removing old history beyond its maximum size failed", "err", berr)
		}
	}
	if givenUp(ctx, err) { // the caller's context ended, or the store is being closed
		if fl.failed.Add(1) == 1 || fl.reached > 0 {
			fl.reached = max(fl.reached, fl.begun)
		}
		return err
	}
	if err != nil || fl.engine.Log().Flushed() >= fl.reached {
		fl.reached = 0
	}
	if err = fl.engine.Log().Folder().Explain(err); err != nil {
		err = fl.engine.Env().Explain(err)
		fl.failed.Add(1)
		fl.tell(err)
		return err
	}
	if spilled {
		fl.indexStands()
	}
	fl.engine.Health().Flushed(fl.engine.Env().Clock(), fl.indexErr)
	diskspace.Watch(fl.engine)
	if fl.reached == 0 { // else the next piece also repeats some of the canceled work
		fl.failed.Store(0)
	}
	fl.judgeAside(ctx, held)
	if n > 0 || spilled {
		took := fl.engine.Env().Clock().Sub(began)
		fl.engine.Env().Meters.Took(meter.Flush, took)
		fl.engine.Env().Event(env.Event{Kind: env.EventFlush, Count: n, LSN: fl.engine.Log().Flushed(), Took: took})
	}
	return nil
}

// mostRemade is the maximum number of times that FlushRound repeats a round because folders were missing.
const mostRemade = 3

// repeats reports whether a round failed because a file or folder was missing that may exist when the round is
// repeated.
func (fl *Flusher) repeats(ctx context.Context, err error) bool {
	return errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errs.ErrSyncFailed) && ctx.Err() == nil &&
		!fl.engine.Settings().Gone() && fl.engine.Log().Folder().InPlace() == nil
}

// remakes reports whether a round that failed with err is to be repeated. This is so if a folder of documents was
// missing, because a user has removed or moved it, and remakes has created it again. The flusher must check this
// itself: a process that only writes reads no documents from files, which would also show that the folder is missing.
// The caller holds flush.lock.
func (fl *Flusher) remakes(ctx context.Context, err error) (made bool) {
	if !fl.repeats(ctx, err) {
		return false
	}
	eng := fl.engine
	for _, k := range eng.Present() {
		missing := errors.Is(k.Check(), fs.ErrNotExist)
		if err := k.MakeAgain(eng.State().Live(k.Letter) > 0); err != nil {
			eng.NoteProblem(fmt.Errorf("recreating the missing folder %s: %w", k.Name(), err))
			return false
		}
		made = made || missing
	}
	return made
}

// givenUp reports whether err means that the work was canceled, and not that it failed.
func givenUp(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, errs.ErrSyncFailed)
}

// tell logs and reports an error because of which the files or the index could not catch up with the log.
func (fl *Flusher) tell(err error) {
	fl.engine.Health().Flushed(fl.engine.Env().Clock(), err)
	diskspace.Watch(fl.engine)
	fl.engine.Env().Logger.Error("flush failed, will be retried", "err", err)
	fl.engine.Env().Event(env.Event{Kind: env.EventFlushError, Err: err})
}

func (fl *Flusher) round(ctx context.Context, held *wal.Held, m Merge) (n int, spilled bool, err error) {
	fl.begun = 1
	if err := fl.engine.CatchUp(ctx); err != nil {
		return 0, false, err
	}
	fl.engine.Settings().Reread()
	if err := fl.raiseFound(held); err != nil {
		return 0, false, err
	}
	c, err := fl.engine.Log().Checkpoint()
	if err != nil {
		return 0, false, err
	}
	fl.lookForChanges(c)
	distrusted := fl.engine.Log().Notes().Distrusted()
	if distrusted || fl.leftovers || fl.engine.Log().Notes().Abandoned() {
		if fl.following != nil { // it has a file in tmp/
			if err := fl.followed(); err != nil {
				return 0, false, err
			}
			if c, err = fl.engine.Log().Checkpoint(); err != nil {
				return 0, false, err
			}
		}
		if err := fl.EmptyTemp(ctx, held); err != nil {
			return 0, false, err
		}
		fl.leftovers = false
		if fl.engine.Log().Notes().Abandoned() {
			// The index may be in place already, and the note missing.
			if err := fl.engine.Log().Notes().IndexRebuilt(held); err != nil {
				return 0, false, err
			}
		}
		if err := fl.engine.Log().Notes().Tidied(held); err != nil {
			return 0, false, err
		}
	}
	if fl.following != nil {
		// The work has a file in tmp/.
	} else if err := fl.sweepTemp(ctx, held); err != nil {
		fl.engine.Env().Logger.Warn("removing temp files of killed processes failed", "err",
			err) // nothing depends on it
	}
	if distrusted {
		fl.files.Distrust()
	}
	// Everything that an index in its place covers is in files, durably, even if a flusher was killed before the
	// checkpoint recorded that. If such a file were put again, and lost before the folder is synced, another memory's
	// file might be in its place, and the next process would use that index without checking.
	if err := fl.engine.KeepUp(held); env.Passing(err) {
		return 0, false, err
	}
	list, to, err := fl.Due(ctx, m, c)
	if err != nil {
		return 0, false, err
	}
	more := to.LSN < fl.engine.Log().AppliedMark().LSN
	fl.files.Last(closing(m) && !more)
	from := max(c.Flushed.LSN, fl.Lagging.filed)
	files := fl.filing(ctx, from, distrusted)
	err = files.put(ctx, held, list)
	before := c.Flushed
	if err == nil {
		c.Flushed, err = files.hold(ctx, c, to, m)
	}
	var beside *spilling
	changes := fl.engine.State().Overlay().Len()
	spills := err == nil && fl.spillDue(m, c, more)
	switch {
	case fl.leaves && (spills || fl.following != nil):
		fl.owes.Store(true)
	case fl.following == nil:
		fl.owes.Store(false)
	}
	if spills && !fl.leaves {
		if beside, spilled, err = fl.spillOf(ctx, held, c.Flushed, files, m); spilled {
			c.Spilled = c.Flushed
		}
	}
	defer func() {
		if beside != nil {
			beside.set.Release()
		}
	}()
	if err = files.end(err); err != nil {
		fl.Lagging, fl.begun = lag{}, files.begun
		return 0, false, err
	}
	fl.keepRefused(ctx, held, c.Flushed.LSN)
	fl.moved += max(to.LSN, from) - from
	fl.Lagging.filed = to.LSN
	fl.More.Store(to.LSN < fl.engine.Log().AppliedMark().LSN)
	fl.endPurge(ctx, held, c.Flushed.LSN)
	if len(list) == 0 && !spilled && beside == nil && !distrusted && c.Flushed == before && before.LSN < to.LSN {
		return 0, false, nil // lagging scopes keep lagging
	}
	if err := fl.engine.Log().SetCheckpoint(held, c.Flushed, c.Spilled, fl.FolderTimes()); err != nil {
		return len(list), false, err
	}
	if fl.trusts {
		if err := fl.engine.Log().Notes().Trust(held); err != nil {
			return len(list), false, err
		}
	}
	if spilled {
		if err := fl.mapIndex(held); err != nil {
			return len(list), true, err
		}
		if fl.wordsLeft = fl.leavesWords(m, changes); !fl.wordsLeft {
			fl.follow(ctx, held)
		}
	}
	if beside != nil {
		fl.writeBeside(ctx, held, beside)
		beside = nil
	}
	return len(list), spilled, nil
}

// The maximum numbers of files that a background round writes: PaceFiles, so that writers have the disk between rounds;
// QuietFiles, if no process wrote during the last background round, or if writers are slowed anyway.
const (
	PaceFiles  = 1000
	QuietFiles = 4096
)

// raiseFound raises the features that the documents in an index require, if the index was rebuilt from files. Normally
// commits raise these features, but the commits of such documents are unknown.
func (fl *Flusher) raiseFound(held *wal.Held) error {
	for _, k := range fl.engine.Present() {
		if k.Feature == 0 || fl.engine.Log().Features()&k.Feature != 0 {
			continue
		}
		ok, err := fl.engine.Log().RaiseFlushing(held, k.Feature)
		if err != nil {
			return err
		}
		if !ok { // the program will end some day; until then its flushes fail at entries that it does not know
			fl.engine.Env().Logger.Warn("a program that does not know this kind of document has the store open",
				"kind", k.Noun)
		}
	}
	return nil
}

// Due returns the changes that a round writes to files, and the position up to which the files, not the log, are
// authoritative after the round. Most rounds write all changes. A round in the background or at a close may write only
// the oldest ones, so that it ends soon; see PaceFiles.
func (fl *Flusher) Due(ctx context.Context, m Merge, c wal.Checkpoint) ([]index.At, wal.Mark, error) {
	to := fl.engine.Log().AppliedMark()
	distrusted, failed := fl.engine.Log().Notes().Distrusted(), fl.failed.Load() > 0
	if distrusted || failed {
		fl.Lagging = lag{}
	}
	from := max(c.Flushed.LSN, fl.Lagging.filed)
	if !distrusted {
		fl.suspect = 0
	} else if fl.suspect == 0 {
		fl.suspect = to.LSN
	}
	// After the files that were distrusted at first are written, one round takes everything: with continuing writes,
	// parts would never end.
	fl.trusts = false
	whole := m != MergeWhenDue && !closing(m) || distrusted && from >= fl.suspect ||
		failed && (fl.reached == 0 || !closing(m))
	if !whole {
		most := PaceFiles
		if failed && m == mergeEnding { // each file is synced individually
			most = endingRepeats
		} else if m == mergeClosing || m == MergeWhenDue && (fl.Quiet.Load() || fl.full() >= slowFrom) {
			most = QuietFiles
		}
		list := fl.engine.State().FirstChanges(from, to.LSN, most+1)
		n := min(len(list), most)
		if closing(m) {
			n = fl.roundOf(list, n)
		}
		if n < len(list) {
			to, err := fl.engine.Log().MarkBefore(ctx, list[n].Pos)
			return list[:n], to, err
		}
		if !distrusted {
			return list, to, nil
		}
	}
	end := to.LSN
	if fl.trusts = distrusted; distrusted {
		end = 1 << 62 // include changes behind to: no file may be skipped because of a newer version
	}
	list := fl.engine.State().Changes(from, end)
	if failed && fl.reached == 0 {
		diskspace.DeletedFirst(list)
	}
	return list, to, nil
}

// FolderTimes returns the modification times of the document folders for the checkpoint. For a folder that other
// programs have changed, it returns the time in the previous checkpoint.
func (fl *Flusher) FolderTimes() [wal.Folders]int64 {
	t := fl.folderTimes()
	for i, was := range fl.uncompared {
		if was != 0 {
			t[i] = was
		}
	}
	return t
}

// lookForChanges finds the document folders in which users have deleted, added or renamed files since the checkpoint.
// The checkpoint keeps the old times of these folders until the names in the folder were compared with the index
// (Compared). If the checkpoint had the time of this round, the next process to open the store would not notice the
// change.
func (fl *Flusher) lookForChanges(c wal.Checkpoint) {
	fl.uncompared = [wal.Folders]int64{}
	now := fl.folderTimes()
	for i := range fl.compared {
		if was := c.Mtimes[i]; was != 0 && was != now[i] && fl.compared[i].Load() != now[i] {
			fl.uncompared[i] = was
		}
	}
}

// Compared records that the names in the folder of a kind were compared with the index, and that no file is missing.
// changed is the folder's modification time at that moment.
func (fl *Flusher) Compared(kind int, changed int64) { fl.compared[kind].Store(changed) }

func (fl *Flusher) folderTimes() [wal.Folders]int64 {
	var t [wal.Folders]int64
	// the checkpoint has space for no more
	for i, k := range fl.engine.Kinds().All[:min(len(fl.engine.Kinds().All), wal.Folders)] {
		if k.Tree() {
			continue // see adopt.Reconcile
		}
		if info, err := fl.engine.Env().FS.Stat(filepath.Clean(k.Path(""))); err == nil {
			t[i] = info.Mtime.UnixNano()
		}
	}
	return t
}

// judgeAside lets the host decide about the files that this round, and earlier failed rounds, have moved to quarantine.
func (fl *Flusher) judgeAside(ctx context.Context, held *wal.Held) {
	aside := fl.aside
	fl.aside = nil
	wait := fl.engine.Env().LockWait
	if _, ends := ctx.Deadline(); ends {
		wait = min(wait, endingJudge)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait) // files that were set aside are nowhere else
	defer cancel()
	fl.host.JudgeAside(ctx, held, aside)
}
