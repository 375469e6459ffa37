package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Cache is the documents that were read or written lately, in at most so many bytes.
type Cache struct {
	*otter.Cache[string, *cached]
	most int64 // bytes of a document
}

// cached is a document in the cache. It is the newest version as long as the overlay names it, or
// has nothing of its key and the index was not replaced since swaps. Once that was replaced the
// version is looked up there again, but the document is not read again.
//
// An edit by hand is an entry of the log once a process has seen it; before that the cache cannot
// know of it. So the file's size and time are looked at when the version is first met below
// flushed, and again when it is looked up in another index: an edit is then decided about as by any
// read.
type cached struct {
	kind    *Kind
	lsn     wal.LSN
	doc     []byte
	expires time.Time
	created time.Time
	updated time.Time
	mtime   int64
	vector  int64
	by      uint32
	session string

	swaps  atomic.Uint64 // State.Swaps from before it was known to be the newest version
	looked atomic.Bool   // its file was looked at since
}

// cachedBytes is what a document takes in the cache besides its bytes, its key and its session.
const cachedBytes = 384

// NewCache makes a cache of so many bytes, nil for none.
func NewCache(bytes int64) (*Cache, error) {
	if bytes <= 0 {
		return nil, nil
	}
	c, err := otter.New(&otter.Options[string, *cached]{
		MaximumWeight: uint64(bytes),
		Weigher: func(key string, c *cached) uint32 {
			return uint32(len(key) + cap(c.doc) + len(c.session) + cachedBytes)
		},
		Executor: func(fn func()) { fn() },
	})
	return &Cache{c, bytes / 4}, err
}

// caches reports whether a document of this size is in the cache once it was read.
func (eng *Engine) caches(doc []byte) bool {
	return eng.cache != nil && int64(len(doc)) < eng.cache.most
}

// Load returns the newest version with its document, from the cache if it is there.
// The document is shared and not to be changed.
func (eng *Engine) Load(ctx context.Context, k *Kind, id string) (Version, error) {
	if eng.cache == nil {
		return eng.Find(ctx, k, id, true)
	}
	if c, ok := eng.cache.GetIfPresent(k.CacheKey(id)); ok && c.kind == k {
		if err := eng.CatchUp(ctx); err != nil {
			return Version{}, err
		}
		if eng.isNewest(c, id) {
			return c.version(), nil
		}
	}
	// Both before it is looked up: what replaces the version leaves the overlay behind a swap only.
	swaps, flushed := eng.state.Swaps(), eng.log.Flushed()
	v, err := eng.Find(ctx, k, id, true)
	if err == nil && eng.caches(v.Doc) {
		c := &cached{
			kind: k, lsn: v.LSN, doc: v.Doc, expires: v.Line.ExpiresAt, created: v.Line.CreatedAt, updated: v.Line.UpdatedAt,
			mtime: v.Line.Mtime, vector: v.Line.VectorNumber(), by: v.Line.By,
			session: v.Line.SessionID,
		}
		c.swaps.Store(swaps)
		c.looked.Store(v.LSN < flushed)
		eng.cache.Set(k.CacheKey(id), c)
	}
	return v, err
}

// isNewest reports whether what is cached is the newest version, as far as this process has caught up.
func (eng *Engine) isNewest(c *cached, id string) bool {
	file := index.Entry{Size: int64(len(c.doc)), Mtime: c.mtime}
	if !eng.state.Changed(c.kind.Letter, id, c.lsn, c.swaps.Load()) {
		if c.looked.Load() || c.lsn >= eng.log.Flushed() {
			return true
		}
		return eng.looksLike(c, id, &file)
	}
	seen, swaps := eng.log.Applied(), eng.state.Swaps()
	p, err := eng.state.Find(c.kind.Letter, id)
	// Many documents have a version that is no position of a frame, in more than one index.
	if err != nil || p.InLog || p.Version != c.lsn || p.Version%8 != 0 || eng.log.Applied() < seen ||
		!eng.looksLike(c, id, &p.Entry) {
		return false
	}
	c.swaps.Store(swaps)
	return true
}

// looksLike reports whether the file has the size and the time that it should have.
func (eng *Engine) looksLike(c *cached, id string, file *index.Entry) bool {
	info, err := c.kind.Stat(c.kind.FileName(id))
	if err != nil || !Matches(file, info) {
		return false
	}
	c.looked.Store(true)
	return true
}

func (c *cached) version() Version {
	v := Version{LSN: c.lsn, Doc: c.doc}
	v.Line.ExpiresAt, v.Line.CreatedAt, v.Line.UpdatedAt = c.expires, c.created, c.updated
	v.Line.Version, v.Line.VectorID, v.Line.Mtime = c.lsn, c.vector, c.mtime
	v.Line.SessionID, v.Line.Size, v.Line.By = c.session, int64(len(c.doc)), c.by
	return v
}

// Written takes a memory into the cache that this process has just put. m is the memory as it was
// prepared, doc its document, which belongs to the cache from here on; swaps is State.Swaps from
// before the entry was appended: later, a newer version from another process may have gone from the
// overlay already.
func Written(eng *Engine, m *memstore.Memory, doc []byte, e *wal.Entry, swaps uint64) {
	if !eng.caches(doc) {
		return
	}
	k := eng.kinds.Memories
	c := &cached{
		kind: k, lsn: e.LSN, doc: doc, expires: m.ExpiresAt.Truncate(time.Microsecond),
		created: m.CreatedAt.Truncate(time.Microsecond),
		updated: m.UpdatedAt, mtime: e.Time.UnixMicro(), vector: int64(e.LSN), by: e.Writer,
		session: m.Session(),
	}
	if len(m.Embedding) > 0 { // which may be that of an older version
		line, _, err := state.LineIn(e)
		if err != nil {
			return
		}
		c.vector = line.VectorNumber()
	}
	c.swaps.Store(swaps)
	eng.cache.Set(k.CacheKey(m.ID), c)
}
