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

// openScopes is how many scopes that nobody uses at the moment stay at hand. One
// that does not is read from its file again.
const openScopes = 1000

// openBytes is how many bytes these have, the one that was used last apart.
const openBytes = 64 << 20

// Scopes are the scopes that this process has at hand.
type Scopes struct {
	engine  *engine.Engine
	flusher *flush.Flusher

	tuning Tuning

	mu     sync.RWMutex
	open   map[string]*scope // by key
	idle   list.List         // of *scope, those that nobody uses, the least recently used first
	unused int64             // bytes of these
	names  sync.Map          // file name: key, of files whose head was read
	began  time.Time         // when the store was opened, by the wall clock
	mono   func() time.Duration
	opened time.Duration // the same, by mono
}

// scope is a scope at hand. Its state is what the entries up to lsn make of it,
// all of them durable; ahead has also what is being committed.
type scope struct {
	ws     *Scopes
	key    string
	scope  working.Scope
	newest atomic.Uint64 // the newest entry that was applied
	users  int           // these three under scopes.mu
	at     *list.Element
	idle   int64        // what it counts in scopes.unused
	size   atomic.Int64 // about the bytes of the state

	mu      sync.Mutex
	state   *working.State // nil: not read yet
	lsn     wal.LSN        // of the newest entry in it
	time    time.Time      // of that
	breaks  uint64         // the log was followed without one since
	edited  bool           // the file was edited by hand, and the log does not say so yet
	file    believed
	grown   int64 // bytes of changes that it does not have yet
	lacks   lacks
	whole   wholeAt // see copy.go
	ahead   *working.State
	aheadOf wal.LSN // what the state had when ahead was equal to it
	offset  int64   // of the ticks

	waiting sync.Mutex // guards the two below
	queue   []*asked
	busy    bool // somebody commits for all
}

// believed is what this process left in, or read from, a scope's file.
type believed struct {
	size  int64
	mtime time.Time
	lsn   wal.LSN // as of which it is; 0 when that says nothing, the file being of another log
}

// Tuning has the parameters that tests change while nothing uses the store.
type Tuning struct {
	Uptime func() time.Duration // of the host, which all processes share; nil: unknown
	Least  int64                // bytes of a scope's file: a smaller one does not lag
	Most   int64                // bytes of a scope's file: what would make it larger is refused
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

// Tune returns the parameters that tests change.
func (ws *Scopes) Tune() *Tuning { return &ws.tuning }

// NoteWorked notes that an entry of a scope was applied.
func (ws *Scopes) NoteWorked(key string, at uint64) {
	ws.mu.RLock()
	s := ws.open[key]
	ws.mu.RUnlock()
	if s != nil {
		s.newest.Store(at)
	}
}

// acquire gives a scope, which stays at hand until release.
func (ws *Scopes) acquire(of working.Scope) *scope {
	key := of.Key()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	s := ws.open[key]
	if s == nil {
		s = &scope{ws: ws, key: key, scope: of}
		ws.open[key] = s
	}
	if s.users++; s.at != nil {
		ws.idle.Remove(s.at)
		ws.unused -= s.idle
		s.at = nil
	}
	return s
}

// acquireKey is acquire by the key.
func (ws *Scopes) acquireKey(key string) (*scope, error) {
	of, err := working.ParseScope(key)
	if err != nil {
		return nil, fmt.Errorf("an entry of the log: %w", err)
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

// forget lets a scope go that nobody uses.
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
