package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// Host is the interface through which an engine calls the packages above it: to rebuild an index, to decide
// about an edited file, and to flush.
type Host interface {
	// RebuildIndex rebuilds the index, from an older index and the log or from the files. from names the older index;
	// "" means the files. memories is the number of memories in the new index.
	RebuildIndex(ctx context.Context, start *wal.Start) (set *index.Set, from string, memories int, err error)
	// JudgeEdit decides what to do about a file that differs from the version that the index names: it adopts
	// the file as an edit by hand, or reports an error.
	JudgeEdit(ctx context.Context, k *Kind, id string) (Version, error)
	// FlushDue asks the flusher to start a round.
	FlushDue()
	// NoteRefused records that a log entry could not be applied because of err.
	NoteRefused(e *wal.Entry, err error)
	// NoteWorked records that the log entry of working memory at position pos was applied. scope is the key of the
	// entry's scope.
	NoteWorked(scope string, pos uint64)
}

// Config has the parameters of New besides the environment.
type Config struct {
	// Limits returns the current limits of documents.
	Limits     func() (memstore.Limits, assembly.Limits)
	CacheBytes int64          // size of the cache of documents; not positive: no cache
	Writer     *writer.Writer // writer of this handle; nil: unknown
	Unfinished bool           // the store is a copy that an unfinished migration is writing
}

// Tuning has parameters that only tests change, while nothing uses the store.
type Tuning struct {
	Times  Times  // source of the times of documents; nil: the documents are read instead
	Orders Orders // source of the orders of documents; nil: the index is read instead
	Few    int    // number of memories below which filters read all of them, even if Orders could answer
}

// Engine is the core of an open store: the log, the state that is applied from the log, and the code that finds and
// reads documents. All other parts of an open store use it.
type Engine struct {
	env      *env.Env
	settings *settings.Settings
	kinds    *kinds
	host     Host

	log    *wal.FileLog
	state  state.State
	codec  record.Codec
	token  string // prefix of the files of this process in tmp/
	opened opened
	health health

	writing writing
	purged  purged

	purgedTexts purgedTexts

	cache    *Cache // nil: no cache
	overlay  overlayOrder
	expiring Expiring
	tuning   Tuning

	remade     atomic.Uint64 // value of the log's Notes.IndexRebuilds when the index was last mapped
	refreshing sync.Mutex
	damaged    atomic.Bool // set when a read finds damage in the index; the next flush then rebuilds the index

	lacking    []*kind.Kind      // kinds with a Feature whose folder did not exist when the store was opened
	vanished   []string          // folders of document kinds without a Feature that did not exist then: see makeVanished
	linked     *errs.LinkedError // the log belongs to another folder, so this handle is read-only
	unfinished bool              // value of Config.Unfinished
	moved      moved

	commits atomic.Int64 // commits of documents and working memory that calls of this handle requested

	closed     atomic.Bool
	operations sync.WaitGroup // operations that Close waits for
	progress   lasting
	closing    sync.RWMutex
}

// New returns an engine for the store that e describes. The engine has no log yet: see OpenLog. It calls host only
// after OpenLog was called.
func New(e *env.Env, s *settings.Settings, host Host, c Config) (*Engine, error) {
	eng := &Engine{env: e, settings: s, host: host, unfinished: c.Unfinished}
	eng.tuning.Few = fewMemories
	eng.writing.self.Store(c.Writer) // completed by Begin
	eng.progress.Init()
	eng.expiring.init(eng)
	eng.state.Refused, eng.state.Worked, eng.state.Explained = host.NoteRefused, host.NoteWorked, eng.explainedBelow
	eng.kinds = newKinds(eng.Layout(), e.NaiveTimes, c.Limits, eng.refuseText)
	var err error
	eng.cache, err = NewCache(c.CacheBytes)
	return eng, err
}

// Begin examines the folder of the store. If the store does not exist, Begin creates it, unless mustExist is true.
// Begin is called once, before OpenLog and before anything writes files to tmp/.
func (eng *Engine) Begin(ctx context.Context, mustExist bool) (err error) {
	if err := eng.enter(ctx, mustExist); err != nil {
		return err
	}
	if err := eng.env.Hold(); err != nil { // the folder may have appeared at its path just now
		return fmt.Errorf("opening %s: %w", eng.env.Dir, err)
	}
	if err := eng.newerVectors(); err != nil {
		return err
	}
	if eng.token, err = eng.newToken(); err == nil && eng.writing.self.Load() != nil {
		eng.writing.opened = eng.env.Clock()
		eng.setWriter(eng.writing.self.Load())
	}
	return err
}

// OpenLog opens the log and recovers it. A log that belongs to another folder is opened read-only: see Linked.
func (eng *Engine) OpenLog(ctx context.Context, o wal.Options) (err error) {
	eng.log, err = wal.Open(ctx, o)
	if errors.As(err, &eng.linked) { // it can still be read
		eng.env.ReadOnly, o.ReadOnly, o.Create = true, true, false
		eng.log, err = wal.Open(ctx, o)
	}
	if err != nil {
		eng.state.Close()
		return eng.env.Explain(err)
	}
	eng.codec.Bound(eng.log.Limit())
	if eng.linked == nil {
		eng.linked = eng.log.Report().Linked
	}
	if eng.env.ReadOnly { // a read-only handle holds no lock that prevents moving the store
		if err := eng.CheckMoved(); err != nil {
			return errors.Join(err, eng.log.Close(), eng.state.Close())
		}
		return nil
	}
	eng.makeVanished(ctx)
	return nil
}

// Layout returns the paths and file modes of the store's documents.
func (eng *Engine) Layout() docfile.Layout {
	e := eng.env
	return docfile.Layout{FS: e.FS, Root: e.Dir, FileMode: e.FileMode, FolderMode: e.FolderMode}
}

// Env returns the folder, file system, clock and logger with which the store was opened.
func (eng *Engine) Env() *env.Env { return eng.env }

// Settings returns the settings of the store.
func (eng *Engine) Settings() *settings.Settings { return eng.settings }

// Kinds returns the kinds of documents that the store can have.
func (eng *Engine) Kinds() *kinds { return eng.kinds }

// Log returns the log, nil before OpenLog.
func (eng *Engine) Log() *wal.FileLog { return eng.log }

// State returns the state that this process has applied from the log.
func (eng *Engine) State() *state.State { return &eng.state }

// Codec returns the codec of the log's records.
func (eng *Engine) Codec() *record.Codec { return &eng.codec }

// Token returns the prefix that all names of this process's files in tmp/ have.
func (eng *Engine) Token() string { return eng.token }

// Opened returns the record of the findings and actions of opening the store, and of problems found since.
func (eng *Engine) Opened() *opened { return &eng.opened }

// Health returns the record of failures of background work since the store was opened.
func (eng *Engine) Health() *health { return &eng.health }

// Cache returns the cache of documents, nil for a store without a cache.
func (eng *Engine) Cache() *Cache { return eng.cache }

// Overlay returns the documents that are newer than the index, in index order.
func (eng *Engine) Overlay() *overlayOrder { return &eng.overlay }

// Expiring returns the tracker of memories that have a time to live.
func (eng *Engine) Expiring() *Expiring { return &eng.expiring }

// Tune returns the parameters that only tests change.
func (eng *Engine) Tune() *Tuning { return &eng.tuning }

// SetOrders sets the views that answer filters without reading the index. It is called before OpenLog.
func (eng *Engine) SetOrders(o Orders, t Times) { eng.tuning.Orders, eng.tuning.Times = o, t }

// Remade returns the number of rebuilds of the index (Notes.IndexRebuilds of the log) at the time at which this process
// last mapped the index.
func (eng *Engine) Remade() *atomic.Uint64 { return &eng.remade }

// Damaged returns the flag that a read sets when it finds damage in the index; the next flush then rebuilds
// the index.
func (eng *Engine) Damaged() *atomic.Bool { return &eng.damaged }

// Linked returns an error if the log belongs to another folder, so that this handle is read-only. Otherwise it returns
// nil.
func (eng *Engine) Linked() *errs.LinkedError { return eng.linked }

// Commits returns the counter of the commits that calls of this handle requested.
func (eng *Engine) Commits() *atomic.Int64 { return &eng.commits }

// Closed returns the flag that is set once the store is closed.
func (eng *Engine) Closed() *atomic.Bool { return &eng.closed }

// Operations returns the group of running operations that Close waits for.
func (eng *Engine) Operations() *sync.WaitGroup { return &eng.operations }

// Progress returns the tracker of operations that may take long. Close abandons these operations if the log makes no
// progress.
func (eng *Engine) Progress() *lasting { return &eng.progress }

// Closing returns a lock. Close holds it for writing, and operations hold it for reading while they begin.
func (eng *Engine) Closing() *sync.RWMutex { return &eng.closing }

// newToken returns a Token, the prefix of this process's files in tmp/:
//
//	<process id> '-' <birth, hex> '-' 12 random hex digits
//	16 random hex digits, where the process cannot be told from others; see vfs.Host
func (eng *Engine) newToken() (string, error) {
	var b [8]byte
	if err := eng.env.Random(b[:]); err != nil {
		return "", err
	}
	if h := eng.env.FS.Host(); h.Birth != 0 {
		return fmt.Sprintf("%d-%x-%x", h.PID, h.Birth, b[:6]), nil
	}
	return hex.EncodeToString(b[:]), nil
}
