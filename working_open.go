package varve

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// openScopes is how many scopes that nobody uses at the moment stay at hand. One
// that does not is read from its file again.
const openScopes = 1000

// scopes are the scopes that this process has at hand.
type scopes struct {
	mu    sync.RWMutex
	open  map[string]*scope // by key
	idle  list.List         // of *scope, those that nobody uses, the least recently used first
	names sync.Map          // file name: key, of files whose head was read
	clock ticks
	least int64 // bytes of a scope's file: a smaller one does not lag
	most  int64 // bytes of a scope's file: what would make it larger is refused
}

// scope is a scope at hand. Its state is what the entries up to lsn make of it,
// all of them durable; ahead has also what is being committed.
type scope struct {
	st     *Store
	key    string
	scope  working.Scope
	newest atomic.Uint64 // the newest entry that was applied
	users  int           // these two under scopes.mu
	at     *list.Element

	mu      sync.Mutex
	state   *working.State // nil: not read yet
	lsn     wal.LSN        // of the newest entry in it
	time    time.Time      // of that
	breaks  uint64         // the log was followed without one since
	edited  bool           // the file was edited by hand, and the log does not say so yet
	file    believed
	grown   int64 // bytes of changes that it does not have yet
	lacks   lacks
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

func (w *scopes) init(st *Store) {
	w.open = map[string]*scope{}
	w.idle.Init()
	w.clock.init(st)
	w.least, w.most = st.engine.Env.System.LagBytes, scopeMost
	st.engine.State.Worked = w.applied
}

// applied is state.State's Worked.
func (w *scopes) applied(key string, at uint64) {
	w.mu.RLock()
	s := w.open[key]
	w.mu.RUnlock()
	if s != nil {
		s.newest.Store(at)
	}
}

// acquire gives a scope, which stays at hand until release.
func (w *scopes) acquire(st *Store, of working.Scope) *scope {
	key := of.Key()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.open[key]
	if s == nil {
		s = &scope{st: st, key: key, scope: of}
		w.open[key] = s
	}
	if s.users++; s.at != nil {
		w.idle.Remove(s.at)
		s.at = nil
	}
	return s
}

// acquireKey is acquire by the key.
func (st *Store) acquireKey(key string) (*scope, error) {
	of, err := working.ParseScope(key)
	if err != nil {
		return nil, fmt.Errorf("an entry of the log: %w", err)
	}
	return st.working.acquire(st, of), nil
}

func (w *scopes) release(s *scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.users--; s.users > 0 || w.open[s.key] != s {
		return
	}
	s.at = w.idle.PushBack(s)
	for w.idle.Len() > openScopes {
		w.drop(w.idle.Front().Value.(*scope))
	}
}

// forget lets a scope go that nobody uses.
func (w *scopes) forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.open[key]; s != nil && s.users == 0 {
		w.drop(s)
	}
}

func (w *scopes) drop(s *scope) {
	w.idle.Remove(s.at)
	delete(w.open, s.key)
}
