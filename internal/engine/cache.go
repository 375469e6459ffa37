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

// Cache holds the documents that were read or written recently, up to a total size in bytes.
type Cache struct {
	*otter.Cache[string, *cached]
	most int64 // a document of this size in bytes or more is not cached
}

// cached is a document in the cache. If the overlay has an entry of the document, the cached version is the newest one
// if the entry names the same version. If the overlay has no entry, the cached version is the newest one as long as no
// other index was mapped (State.Swaps still returns swaps). If another index was mapped, the newest version is looked
// up in that index; the document is read again only if it has changed.
//
// An edit by hand becomes an entry of the log only when a process notices the edit; until then the cache does not know
// of it. So the file's size and time are compared when the version is first found below the log position Flushed, and
// again when it is looked up in another index. An edit that is found in this way is handled as in any other read.
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

	swaps  atomic.Uint64 // value of State.Swaps, read before this version was known to be the newest
	looked atomic.Bool   // the document's file was compared after this version was flushed
}

// cachedBytes is the number of bytes of memory that a cached document needs besides its bytes, its key and its
// session.
const cachedBytes = 384

// NewCache returns a cache of at most the given number of bytes. It returns nil if bytes is not positive.
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

// caches reports whether Load puts a document of this size into the cache. It returns false if the engine has no cache.
func (eng *Engine) caches(doc []byte) bool {
	return eng.cache != nil && int64(len(doc)) < eng.cache.most
}

// Load returns the newest version of a document with its content, from the cache if possible. The content is
// shared; callers must not change it.
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
	// Both are read before the look-up: a version that is replaced leaves the overlay only after a swap.
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

// isNewest reports whether a cached document is the newest version according to the part of the log that this process
// has applied.
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
	// A version that is not the position of a frame does not identify one version: many documents have the same one, in
	// more than one index.
	if err != nil || p.InLog || p.Version != c.lsn || p.Version%8 != 0 || eng.log.Applied() < seen ||
		!eng.looksLike(c, id, &p.Entry) {
		return false
	}
	c.swaps.Store(swaps)
	return true
}

// looksLike reports whether the file of a cached version has the size and time that the index records for this version.
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

// Written adds a memory that this process has just put to the cache. m is the memory as it was prepared, and e is its
// log entry. doc is the encoded document; the caller must not change doc any more. swaps is the result of State.Swaps
// before the entry was appended: if it were read later, the overlay might already have dropped a newer version of
// another process.
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
	if len(m.Embedding) > 0 { // the embedding may be that of an older version
		line, _, err := state.LineIn(e)
		if err != nil {
			return
		}
		c.vector = line.VectorNumber()
	}
	c.swaps.Store(swaps)
	eng.cache.Set(k.CacheKey(m.ID), c)
}
