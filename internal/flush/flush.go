package flush

import (
	"context"
	"errors"
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

// Flusher turns durable entries of the log into files and index. One process does that for all: the holder of
// flush.lock.
type Flusher struct {
	engine    *engine.Engine
	vectors   *vectors.Vectors
	views     *views.Views
	rebuilder *rebuild.Maker

	host Host

	files   *docfile.Flusher
	workers int
	kick    chan struct{}
	urge    chan struct{} // signals that writers are slowed: a rest must end
	slowed  slowed
	yielded yielded
	made    time.Time
	// time of the next attempt at an index that could not be written, in nanoseconds since made
	indexAfter atomic.Int64
	unflushed  atomic.Int64 // number of changes of this process since the last round
	commits    atomic.Int64 // number of commits by this process, if System.Rounds is a number of commits
	// time at which this process last recorded that it is alive, if nothing runs in the background
	lastBeat atomic.Int64
	More     atomic.Bool          // the last round left something to do
	Quiet    atomic.Bool          // no process wrote during the last background round
	uptime   func() time.Duration // the clock by which processes announce rests; nil: none
	refusals refusals
	rescuing sync.Mutex // a lock held by Rescue and Close

	inflate   bool       // all documents become files, however highly they are compressed
	unpacking sync.Mutex // guards unpacksTo
	// position below which the documents of all entries may become files, however highly they are compressed
	unpacksTo wal.LSN

	// Fields guarded by flush.lock.
	backupAt   time.Time      // time of the newest index backup
	leftovers  bool           // tmp/ may have files of killed processes
	aside      []docfile.Edit // files that were set aside by this round, and by earlier ones that failed
	beside     bool           // an index is being written, and the views after it, beside further rounds
	following  *following     // the work that is running beside rounds; nil: none
	indexErr   error          // the error because of which the index could not be written
	indexFails int            // number of consecutive failures of writing the index
	dooming    bool           // this round overwrites the files of the index that it replaces: see flushOverwriting
	Unlinked   []string       // files of the index that were not overwritten since a purge failed
	moved      uint64         // number of bytes of log that rounds have written to files
	earlier    atomic.Bool    // this round began while no purge was announced
	failed     atomic.Int64   // number of consecutive failed rounds
	begun      wal.LSN        // position from which on this round has put no document in place
	reached    wal.LSN        // the same position for failed rounds, if all were canceled; otherwise 0
	suspect    wal.LSN        // position after which nothing was written before the store became distrusted
	trusts     bool           // after this round all files are trusted
	Lagging    lag

	compared [wal.Folders]atomic.Int64 // times of the folders that were passed to Compared, by kind
	// the times in the checkpoint of folders that other programs changed; otherwise 0
	uncompared [wal.Folders]int64
}

// Host is the interface of the packages that a flusher calls: they examine edited files, delete by age and limits, and
// keep working memory. The files of working memory contain data whose log entries are released; a round writes these
// files before it sets the checkpoint.
type Host interface {
	// JudgeAside examines the files that a round has set aside, and adopts edits among them.
	JudgeAside(ctx context.Context, held *wal.Held, aside []docfile.Edit)
	// Upkeep is called every few seconds.
	Upkeep(ctx context.Context)
	// CheckParked checks displaced files into which an editor may still save.
	CheckParked(ctx context.Context)
	// PutScopes writes and syncs the files of scopes. distrusted means that the existing files may have any contents.
	// If a scope cannot be written to a file and spares is not nil, PutScopes calls spares: if it returns true the
	// other scopes are written.
	PutScopes(ctx context.Context, keys []string, distrusted bool, spares func(key string, err error) bool) error
	// MayLag reports whether the file of a scope need not be written for now. It returns the position of the first
	// entry that the file lacks.
	MayLag(ctx context.Context, key string, flushed wal.LSN) (first wal.LSN, ok bool)
	// OursScope reports whether a file has the document of a scope as this store wrote it, and not an older one, from
	// before position least, that another program restored.
	OursScope(key string, least wal.LSN, data func() ([]byte, error)) bool
}

// flushWorkers is the number of goroutines that put files in place: more than two gained nothing on any file system
// that was tried.
const flushWorkers = 2

// New returns a flusher for a store that is being opened, before the store's log is. rebuilder rebuilds an index that
// is damaged or missing. With inflate, all documents become files, however highly they are compressed.
func New(eng *engine.Engine, vs *vectors.Vectors, all *views.Views, rebuilder *rebuild.Maker, host Host,
	inflate bool) (*Flusher, error) {
	fl := &Flusher{engine: eng, vectors: vs, views: all, host: host, rebuilder: rebuilder, inflate: inflate}
	fl.workers, fl.made = flushWorkers, time.Now()
	if eng.Env().System.Inline {
		fl.workers = 1
	}
	fl.kick, fl.urge = make(chan struct{}, 1), make(chan struct{}, 1)
	if fl.uptime = eng.Env().System.Uptime; fl.uptime == nil && !eng.Env().System.Inline {
		fl.uptime = vfs.Uptime()
	}
	var err error
	fl.files, err = docfile.NewFlusher(docfile.Options{
		Layout: eng.Layout(), Token: eng.Token(), Clock: eng.Env().Clock,
		Workers: fl.workers, Limit: places.StoredMost, TempFiles: eng.Env().System.TempFiles,
		Keeps: fl.keepsDisplaced, Leaves: fl.purgesIn, Places: fl.places, InPlace: fl.inPlace,
	})
	return fl, err
}

// Leftovers makes the first round search tmp/ for files of killed processes.
func (fl *Flusher) Leftovers() { fl.leftovers = true }

// Files returns the docfile.Flusher that puts documents in place.
func (fl *Flusher) Files() *docfile.Flusher { return fl.files }

// Inflates reports whether all documents become files, however highly they are compressed.
func (fl *Flusher) Inflates() bool { return fl.inflate }

// Close releases the resources that the flusher keeps between rounds.
func (f *Flusher) Close() error {
	f.rescuing.Lock() // the removal of the log may be noticed only now
	defer f.rescuing.Unlock()
	if f.files == nil || f.engine.Log().Folder().Replaced() != nil { // tmp/ may belong to another process
		return nil
	}
	return f.files.Close()
}

// Wake counts committed changes, and starts a round when there are enough.
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

// Merge specifies whether a round writes the index.
type Merge int

const (
	MergeWhenDue Merge = iota
	MergeFlush         // write the changes, in a delta or, if a merge is due, in a new base
	MergeAlways        // write everything into a new base
	MergeFiles         // as MergeWhenDue, and write all changes to files now
	mergeClosing       // for a store that closes: leave little for the next open to replay
	mergeEnding        // as mergeClosing, for a process that must end soon
)

// Flush runs a round.
func (fl *Flusher) Flush(ctx context.Context, m Merge) error {
	held, err := fl.engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	return fl.engine.Log().Folder().Explain(fl.FlushLocked(ctx, held, m))
}

// FlushLocked runs a round. During a purge, or after an interrupted one, it overwrites the files of the index that the
// round replaces.
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

// FlushRound runs a round. It writes the changes since flushed to files, and syncs them; then it writes the index, if
// that is due; and only then it moves the positions in the checkpoint.
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
	if err == nil && !spilled && fl.following == nil {
		fl.views.Round(ctx, held, m == MergeAlways)
	}
	if err == nil && m == MergeAlways {
		err = fl.vectors.Merge(ctx, held)
	}
	if err == nil && m == MergeAlways && !spilled { // writing an index releases the log, which enforces the budget too
		if berr := fl.engine.Log().Archive().KeepBudget(held); berr != nil {
			fl.engine.Env().Logger.Warn("enforcing the budget of the history", "err", berr)
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

// givenUp reports whether an error means that the work was canceled, and not that it cannot be done.
func givenUp(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, errs.ErrSyncFailed)
}

// tell reports the error because of which files or index do not follow the log.
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
		fl.engine.Env().Logger.Warn("removing temp files of killed processes", "err", err) // nothing depends on it
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
	if err == nil && fl.spillDue(m, c, more) {
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
		fl.follow(ctx, held)
	}
	if beside != nil {
		fl.writeBeside(ctx, held, beside)
		beside = nil
	}
	return len(list), spilled, nil
}

// The maximum number of files that a background round writes, so that writers have the disk in between. If there are
// no writes, the maximum is higher.
const (
	PaceFiles  = 1000
	QuietFiles = 4096
)

// raiseFound raises the features of kinds of documents that an index rebuilt from files contains: no commit has raised
// them.
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
			fl.engine.Env().Logger.Warn("a program that does not know a kind of document has the store open", "kind", k.Noun)
		}
	}
	return nil
}

// Due returns the changes that a round writes to files, and the position up to which the files are authoritative after
// it. These are all changes, or, in the background and at a close, a part of them.
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

// FolderTimes returns the modification times of the folders after the store's own last change.
func (fl *Flusher) FolderTimes() [wal.Folders]int64 {
	t := fl.folderTimes()
	for i, was := range fl.uncompared {
		if was != 0 {
			t[i] = was
		}
	}
	return t
}

// lookForChanges finds the folders that other programs changed since the checkpoint: they deleted, added or renamed
// files. Their times in the checkpoint stay as they are until the names in the folder were compared with the index
// (Compared): with the time of this round, the next open would see no change.
func (fl *Flusher) lookForChanges(c wal.Checkpoint) {
	fl.uncompared = [wal.Folders]int64{}
	now := fl.folderTimes()
	for i := range fl.compared {
		if was := c.Mtimes[i]; was != 0 && was != now[i] && fl.compared[i].Load() != now[i] {
			fl.uncompared[i] = was
		}
	}
}

// Compared records that the names in the folder of a kind, as it was at the time changed, were compared with the
// index, and that no file is missing.
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

// judgeAside has the Host examine the files that this round, and earlier ones that failed, have set aside.
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
