package memorystores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/served"
)

// Caller identifies the client that makes a request.
type Caller struct {
	Name     string // name that versions written by the client have as api_key_id
	ReadOnly bool
	Stores   []string // ids of the stores that the client may use; nil: all, and the client may create stores
}

// Options are the settings of Open and Single. The zero value of each field except Caller selects its default.
type Options struct {
	// Caller returns the client that makes a request, from the context of the request; false refuses the
	// request. Required.
	Caller func(ctx context.Context) (Caller, bool)
	// Open opens the store in a folder. If it is missing, Open creates it, or with mustExist fails with
	// varve.ErrNoStore: see varve.Options.MustExist. nil: varve.Open with a small cache.
	Open     func(ctx context.Context, dir string, mustExist bool) (*varve.Store, error)
	MostOpen int           // maximum number of stores that are open at once; 0 means 64
	Idle     time.Duration // time after which an unused store is closed; 0 means 5 min
	Name     string        // name for the store of Single if it has none yet
	Trash    time.Duration // time for which deleted stores are kept; 0 means 30 days, a negative time forever
	Clock    func() time.Time
	Logger   *slog.Logger // receives errors, warnings and removals of deleted stores; nil discards them
}

// The defaults of Options.
const (
	defaultMostOpen = 64
	defaultIdle     = 5 * time.Minute
	defaultTrash    = 30 * 24 * time.Hour
)

// StoreCache is the size in bytes of the cache of a store that Options.Open does not open.
const StoreCache = 4 << 20

// closeWithin is the time limit for closing a store.
const closeWithin = 10 * time.Second

// Stores serves the memory stores in a folder, or one store only. Several goroutines may use it at the same time.
type Stores struct {
	o   Options
	dir string
	one *served.Store // the one store, for Single

	self     vfs.Users
	uptime   func() time.Time     // a clock that cannot be set
	seenOld  map[string]time.Time // names that emptyTrash found old, with the uptime at which it first did
	naming   chan struct{}        // has an element while a store gets an id
	scanning sync.Mutex           // held while the folder is scanned; locked before mu

	mu      sync.Mutex
	folders map[string]*found
	ids     map[string][]string // names of the folders with a store, by the id of the store
	scanned time.Time
	dirTime time.Time // modification time of the folder at the last scan
	open    map[string]*handle
	leaving map[string]bool // ids of the stores that are being removed
	// stores for which requests wait until another store is closed, with the number of these requests
	wanted  map[string]int
	count   int           // number of handles that are open, being opened or being closed
	closing int           // handles that are being closed, or will be when the last listening request ends
	freed   chan struct{} // closed when a request has ended its use of a handle, or when a handle was closed
	closed  bool
}

// handle is a store that is open, being opened or being closed.
type handle struct {
	id      string
	dir     string
	ready   chan struct{} // closed when store or err is set
	store   *varve.Store
	err     error
	done    chan struct{} // closed when the store is closed
	uses    int
	listens int           // number of listening uses, which last until their clients end them or the store is closed
	leave   chan struct{} // closed when new requests no longer get the handle
	last    time.Time     // time of the last use
	checked time.Time     // time of the last check that the store's folder was not replaced
	dropped bool          // new requests no longer get the handle
	closing bool          // the handle is counted in Stores.closing
	view    view
	once    sync.Once
	value   any // value for Lease.Value
	// acquired once for each running write, and mostWrites times to archive the store
	writes *semaphore.Weighted
}

// mostWrites is the maximum number of running writes to a store.
const mostWrites = 1 << 20

// Open returns the stores in a folder, which is created if it is missing. The caller must call Close.
func Open(dir string, o Options) (*Stores, error) {
	s, err := newStores(o)
	if err != nil {
		return nil, err
	}
	if s.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the stores: %w", err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "config.json")); err == nil {
		return nil, fmt.Errorf("%w: %s is a store, not a folder of stores: name the folder that contains the store, "+
			"or serve this store alone", varve.ErrInvalid, s.dir)
	}
	return s, nil
}

// Single returns a Stores that serves one store. The caller must close the store.
func Single(st *served.Store, o Options) (*Stores, error) {
	s, err := newStores(o)
	if err == nil {
		s.one = st
	}
	return s, err
}

func newStores(o Options) (*Stores, error) {
	if o.Caller == nil {
		return nil, fmt.Errorf("%w: memory stores need Options.Caller", varve.ErrInvalid)
	}
	if o.MostOpen <= 0 {
		o.MostOpen = defaultMostOpen
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Trash == 0 {
		o.Trash = defaultTrash
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Open == nil {
		logger, clock := o.Logger, o.Clock
		o.Open = func(ctx context.Context, dir string, mustExist bool) (*varve.Store, error) {
			return varve.Open(ctx, dir, &varve.Options{MustExist: mustExist, CacheBytes: StoreCache, WatchFiles: true,
				Clock: clock, Logger: logger, Writer: &varve.Writer{Program: "memorystores"}})
		}
	}
	return &Stores{o: o, folders: map[string]*found{}, ids: map[string][]string{}, open: map[string]*handle{},
		leaving: map[string]bool{}, wanted: map[string]int{}, naming: make(chan struct{}, 1), uptime: time.Now,
		self:  vfs.Self(os.Getenv),
		freed: make(chan struct{})}, nil
}

// errOverloaded means that no further store can be opened: the maximum number of stores is open, and requests are
// running on all of them.
var errOverloaded = errors.New("too many stores are in use at once: try again, or serve with more open stores")

// errEnding means that the server is shutting down.
var errEnding = fmt.Errorf("the server is shutting down: %w", varve.ErrClosed)

// use returns an open handle of the store with this id. The caller must call release.
func (s *Stores) use(ctx context.Context, id string) (*handle, error) {
	if s.one != nil {
		return s.useOne(ctx, id)
	}
	for range 3 {
		f, err := s.find(ctx, id)
		if err != nil {
			return nil, err
		}
		h, err := s.handle(ctx, id, filepath.Join(s.dir, f.name))
		if err != nil {
			return nil, err
		}
		if err = h.err; err == nil {
			err = s.inPlace(h)
		}
		if err == nil {
			return h, nil
		}
		s.forget(h)
		s.release(h)
		if h.err != nil && !errors.Is(h.err, varve.ErrNoStore) && !errors.Is(h.err, errNoStore) &&
			!errors.Is(h.err, errOthers) {
			return nil, h.err
		}
	}
	return nil, errNoStore // it moves faster than it can be opened
}

// useOne returns an open handle of the one store that Single serves, as use does.
func (s *Stores) useOne(ctx context.Context, id string) (*handle, error) {
	st, err := s.one.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	c, err := identify(ctx, st, s.o.Name, s.o.Clock())
	if err == nil && id != "" && c.ID != id {
		err = errNoStore
	}
	if err != nil {
		s.one.Release(st)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.open[""]
	if h == nil || h.store != st || h.id != c.ID {
		h = &handle{id: c.ID, store: st, writes: semaphore.NewWeighted(mostWrites)}
		s.open[""] = h
	}
	return h, nil
}

// handle returns the handle of a store, and counts one more use of the handle. It opens the store if necessary and
// possible.
func (s *Stores) handle(ctx context.Context, id, dir string) (*handle, error) {
	s.mu.Lock()
	for {
		if s.closed {
			s.mu.Unlock()
			return nil, errEnding
		}
		if s.leaving[id] {
			s.mu.Unlock()
			return nil, errNoStore
		}
		if h := s.open[id]; h != nil && h.dir == dir {
			h.uses++
			s.mu.Unlock()
			select {
			case <-h.ready:
				return h, nil
			case <-ctx.Done():
				s.release(h)
				return nil, ctx.Err()
			}
		} else if h != nil {
			s.dropLocked(h) // the folder was renamed
		}
		if s.count < s.o.MostOpen {
			break
		}
		if s.wanted[id]++; s.closing < len(s.wanted) { // for each store that waits one is closed, however many requests wait
			s.dropOldest()
		}
		freed := s.freed
		s.mu.Unlock()
		var err error
		select {
		case <-freed:
		case <-ctx.Done():
			err = errOverloaded
		}
		s.mu.Lock()
		if s.wanted[id]--; s.wanted[id] == 0 {
			delete(s.wanted, id)
		}
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
	}
	h := &handle{id: id, dir: dir, ready: make(chan struct{}), done: make(chan struct{}),
		leave: make(chan struct{}), uses: 1, writes: semaphore.NewWeighted(mostWrites)}
	s.open[id] = h
	s.count++
	s.mu.Unlock()
	// The request that opens a store may end; others wait for it, too.
	opening := context.WithoutCancel(ctx)
	h.store, h.err = s.openIn(opening, dir)
	if h.err == nil {
		if c := h.store.Admin().Config().MemoryStore; c == nil || c.ID != id { // the folder was replaced
			h.err = errors.Join(errNoStore, h.store.CloseWithin(closeWithin))
		}
	}
	if h.err == nil {
		if _, err := h.store.Notes().AdoptFiles(opening, ""); err != nil {
			s.o.Logger.Warn("files that were saved by hand could not be adopted", "store", id, "err", err)
		}
	}
	close(h.ready)
	return h, nil
}

// inPlaceEvery is the minimum interval between two checks that the folder of an open store was not replaced.
const inPlaceEvery = 200 * time.Millisecond

// inPlace returns an error if the folder of an open store was replaced.
func (s *Stores) inPlace(h *handle) error {
	now := time.Now()
	s.mu.Lock()
	fresh := now.Sub(h.checked) < inPlaceEvery
	s.mu.Unlock()
	if fresh {
		return nil
	}
	if err := h.store.Admin().InPlace(); err != nil {
		s.o.Logger.Warn("the folder of a store was removed, renamed or replaced", "store", h.id, "err", err)
		return err
	}
	s.mu.Lock()
	h.checked = now
	s.mu.Unlock()
	return nil
}

// dropOldest drops one store: among the stores that no request uses, or that only listening requests use, the one whose
// last use is the longest ago. If there is no such store, it does nothing. The caller holds s.mu.
func (s *Stores) dropOldest() {
	var oldest *handle
	for _, h := range s.open {
		if h.uses == h.listens && (oldest == nil || h.last.Before(oldest.last)) {
			oldest = h
		}
	}
	if oldest != nil {
		s.dropLocked(oldest)
	}
}

// forget removes the handle h from the open stores, so that no new request gets it. The requests that use h continue.
func (s *Stores) forget(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(h)
}

// dropLocked is forget for a caller that holds s.mu. If no request uses h, it also closes h.
func (s *Stores) dropLocked(h *handle) {
	if h.dropped || s.one != nil {
		return
	}
	h.dropped = true
	close(h.leave)
	if s.open[h.id] == h {
		delete(s.open, h.id)
	}
	s.onlyListens(h)
	if h.uses == 0 {
		go s.close(h)
	}
}

// release ends a use of a handle.
func (s *Stores) release(h *handle) {
	if s.one != nil {
		s.one.Release(h.store)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.uses--
	h.last = time.Now()
	s.onlyListens(h)
	if h.uses == 0 && h.dropped {
		go s.close(h)
	}
}

// onlyListens is called when a use of the handle h has ended, or when a request on h has begun to listen for changes.
// If only listening requests are left, it wakes the requests that wait for another store, because h can now be
// dropped. If h is dropped already, it counts h as being closed. The caller holds s.mu.
func (s *Stores) onlyListens(h *handle) {
	switch {
	case h.uses != h.listens:
	case !h.dropped:
		s.wake()
	case !h.closing:
		h.closing = true
		s.closing++
	}
}

// wake wakes the goroutines that wait until another store can be opened. The caller holds s.mu.
func (s *Stores) wake() {
	close(s.freed)
	s.freed = make(chan struct{})
}

// close closes the store of the handle h. The caller must ensure that no request uses h and that no new request can
// get h.
func (s *Stores) close(h *handle) {
	if h.err == nil {
		if err := h.store.CloseWithin(closeWithin); err != nil && !errors.Is(err, varve.ErrReplaced) {
			s.o.Logger.Warn("closing a store", "store", h.id, "err", err)
		}
	}
	s.mu.Lock()
	s.count--
	s.closing--
	s.wake()
	s.mu.Unlock()
	close(h.done)
}

// drop drops the handle of the store with this id, if the store is open, and waits until the requests on it have ended
// and the store is closed.
func (s *Stores) drop(ctx context.Context, id string) error {
	s.mu.Lock()
	h := s.open[id]
	if h != nil {
		s.dropLocked(h)
	}
	s.mu.Unlock()
	if h == nil {
		return nil
	}
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run closes stores that were not used for Options.Idle, and removes old stores from the trash, until ctx ends.
func (s *Stores) Run(ctx context.Context) {
	if s.one != nil {
		return
	}
	tick := time.NewTicker(min(s.o.Idle, time.Minute))
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%60 == 0 {
			s.emptyTrash(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.mu.Lock()
			for _, h := range s.open {
				if h.uses == 0 && now.Sub(h.last) >= s.o.Idle {
					s.dropLocked(h)
				}
			}
			s.mu.Unlock()
		}
	}
}

// Opened returns the number of stores that are open.
func (s *Stores) Opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Folder returns the path of the folder of the stores; "" for Single.
func (s *Stores) Folder() string { return s.dir }

// Ready returns an error if the folder of the stores cannot be read.
func (s *Stores) Ready(ctx context.Context) error {
	if s.one != nil {
		return nil
	}
	s.scanning.Lock()
	defer s.scanning.Unlock()
	return s.scan(ctx, false)
}

// Close closes all stores. It waits for the requests on each store to end before it closes that store.
func (s *Stores) Close() error {
	if s.one != nil {
		return nil
	}
	s.mu.Lock()
	s.closed = true
	var list []*handle
	for _, h := range s.open {
		list = append(list, h)
		s.dropLocked(h)
	}
	s.mu.Unlock()
	for _, h := range list {
		<-h.done
	}
	for {
		s.mu.Lock()
		n, freed := s.count, s.freed
		s.mu.Unlock()
		if n == 0 {
			return nil
		}
		<-freed
	}
}
