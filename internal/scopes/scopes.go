package scopes

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// openScopes is the maximum number of unused scopes that stay in memory. Other scopes are read from their files
// again.
const openScopes = 1000

// openBytes is the maximum number of bytes that unused scopes occupy in memory. The scope that was used last does not
// count.
const openBytes = 64 << 20

// Scopes has the scopes of working memory of a store. The scopes that this process uses are in memory.
type Scopes struct {
	engine  *engine.Engine
	flusher *flush.Flusher

	tuning Tuning

	mu     sync.RWMutex
	open   map[string]*scope // scopes in memory, by key
	idle   list.List         // unused scopes, *scope, the least recently used first
	unused int64             // bytes of the scopes in idle
	names  sync.Map          // keys of scopes, by file name, for files whose beginning was already read
	began  time.Time         // time at which the store was opened, by the wall clock
	mono   func() time.Duration
	opened time.Duration // the same time, by mono
}

// scope is a scope of working memory that this process has in memory. The field state has the result of the durable log
// entries up to lsn. The field ahead also includes the operations whose commit is in progress.
type scope struct {
	ws     *Scopes
	key    string
	scope  working.Scope
	newest atomic.Uint64 // position of the newest entry applied to the store's state
	users  int           // guarded by Scopes.mu, as are at and idle
	at     *list.Element
	idle   int64        // bytes of the scope that are counted in Scopes.unused
	size   atomic.Int64 // approximate size of the state in bytes

	mu      sync.Mutex
	state   *working.State // nil: not read yet, or must be read again
	lsn     wal.LSN        // position of the newest entry in state
	time    time.Time      // time of that entry
	breaks  uint64         // number of interruptions of following the log, counted when state was read
	edited  bool           // the file was edited by hand, and the edit is not committed yet
	file    believed
	grown   int64 // bytes of changes that the scope's file does not include yet
	lacks   lacks
	whole   wholeAt // position from which log and archive can reproduce the scope; see copy.go
	ahead   *working.State
	aheadOf wal.LSN // value of lsn when ahead was cloned from state
	offset  int64   // ticks added to the store's ticks, so that they never decrease

	waiting sync.Mutex // guards queue and busy
	queue   []*asked
	busy    bool // a goroutine is committing for all callers
}

// believed describes a scope's file as this process last wrote it or read it.
type believed struct {
	size  int64
	mtime time.Time
	lsn   wal.LSN // log position whose state the file has; 0 if unknown, because the file belongs to another log
}

// Tuning has parameters that tests change while the store is not in use.
type Tuning struct {
	Uptime func() time.Duration // uptime of the host, the same for all processes; nil: unknown
	Least  int64                // size in bytes below which the file of a scope does not lag
	// size in bytes of a scope's file from which on a change that adds to the scope is refused
	Most int64
}

// New returns the scopes of working memory of a store.
func New(eng *engine.Engine, fl *flush.Flusher) *Scopes {
	ws := &Scopes{engine: eng, flusher: fl}
	ws.open = map[string]*scope{}
	ws.idle.Init()
	ws.initClock()
	ws.tuning.Least, ws.tuning.Most = ws.engine.Env().System.LagBytes, scopeMost
	return ws
}

// Tune returns the parameters that tests may change.
func (ws *Scopes) Tune() *Tuning { return &ws.tuning }

// NoteWorked records that the log entry of a scope at position pos was applied to the store's state.
func (ws *Scopes) NoteWorked(key string, pos uint64) {
	ws.mu.RLock()
	s := ws.open[key]
	ws.mu.RUnlock()
	if s != nil {
		s.newest.Store(pos)
	}
}

// acquire returns the scope that sc identifies. The scope stays in memory until the caller releases it.
func (ws *Scopes) acquire(sc working.Scope) *scope {
	key := sc.Key()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	s := ws.open[key]
	if s == nil {
		s = &scope{ws: ws, key: key, scope: sc}
		ws.open[key] = s
	}
	if s.users++; s.at != nil {
		ws.idle.Remove(s.at)
		ws.unused -= s.idle
		s.at = nil
	}
	return s
}

// acquireKey does the same as acquire, for a scope's key.
func (ws *Scopes) acquireKey(key string) (*scope, error) {
	of, err := working.ParseScope(key)
	if err != nil {
		return nil, fmt.Errorf("reading the log: an entry has an invalid scope: %w", err)
	}
	return ws.acquire(of), nil
}

func (ws *Scopes) release(s *scope) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if s.users--; s.users > 0 || ws.open[s.key] != s {
		return
	}
	s.at, s.idle = ws.idle.PushBack(s), s.size.Load()
	ws.unused += s.idle
	for n := ws.idle.Len(); n > openScopes || n > 1 && ws.unused > openBytes; n-- {
		ws.drop(ws.idle.Front().Value.(*scope))
	}
}

// forget removes an unused scope from memory.
func (ws *Scopes) forget(key string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if s := ws.open[key]; s != nil && s.users == 0 {
		ws.drop(s)
	}
}

func (ws *Scopes) drop(s *scope) {
	ws.idle.Remove(s.at)
	ws.unused -= s.idle
	delete(ws.open, s.key)
}
