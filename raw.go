package varve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/search"
)

// Raw is a memory with the exact bytes of its document. These are the bytes of its file, or if the file does not have
// the newest version yet, the bytes that the next flush will write.
type Raw struct {
	ID      string
	Version uint64
	Doc     []byte // the exact bytes
}

// ScanRaw calls f for each memory that passes the filters. It is for callers that need only a part of many memories,
// and is several times as fast as Memories: it calls f from several goroutines at once, in no order, and decodes and
// caches nothing. Doc is valid only during the call and must not be changed.
//
// If a memory cannot be read, f gets the error, with the id, and the scan continues. Concurrent writes may or may not
// be seen. ScanRaw returns an error if the listing cannot begin (ErrClosed, ErrMoved), if ctx ends, or if the index
// cannot be read; in the last case f may not have been called for all memories.
func (ad Admin) ScanRaw(ctx context.Context, f func(r Raw, err error), filters ...Filter) error {
	if err := ad.st.inner.Engine.BeginUse(); err != nil {
		return err
	}
	defer ad.st.inner.Engine.EndUse()
	if err := ad.st.inner.Engine.CatchUp(ctx); err != nil {
		return err
	}
	chosen := filtersOf(ctx, ad.st.inner.Engine, filters)
	readers := make([]*rawReader, ad.st.inner.Search.Scanners())
	for i := range readers {
		readers[i] = &rawReader{st: ad.st, f: &chosen, take: f}
	}
	var lines []error
	err := engine.Share(ctx, readers, func(yield func(engine.Listing) bool) error {
		for l, err := range ad.st.inner.Engine.Lines(ctx, ad.st.inner.Engine.Kinds().Memories, chosen) {
			switch {
			case errors.Is(err, errs.ErrClosed), err != nil && ctx.Err() != nil:
				return err
			case err != nil && len(lines) < search.MostUnreadable:
				lines = append(lines, err)
			case err != nil:
			case !yield(l):
				return nil
			}
		}
		return nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return errors.Join(append([]error{err}, lines...)...)
}

// rawReader reads documents without the cache. It belongs to one goroutine.
type rawReader struct {
	st   *Store
	f    *engine.Filters
	take func(r Raw, err error)
	buf  []byte
	err  error // the error that ends the scan
}

func (r *rawReader) Over() error { return r.err }

func (r *rawReader) Read(ctx context.Context, l engine.Listing) bool {
	if r.err = ctx.Err(); r.err != nil {
		return false
	}
	if !l.InLog && !r.f.Reads() {
		if doc, ok := r.file(&l); ok {
			r.take(Raw{l.ID, l.Line.Version, doc}, nil)
			return true
		}
	}
	if l.InLog {
		l.ID = strings.Clone(l.ID) // the id is a part of the frame
	}
	v, err := r.st.inner.Engine.Find(ctx, r.st.inner.Engine.Kinds().Memories, l.ID, true)
	if errors.Is(err, errs.ErrNotFound) || err == nil && v.Stale(r.f, l.ID, r.st.inner.Engine.Env().Clock()) {
		return true // deleted since
	}
	if err == nil && r.f.Reads() {
		var m Memory
		if m, err = r.st.inner.Engine.Decode(l.ID, v); err == nil && !r.f.Still(&m) {
			return true
		}
	}
	if errors.Is(err, errs.ErrClosed) || ctx.Err() != nil {
		r.err = errors.Join(err, ctx.Err())
		return false
	}
	if err != nil {
		r.take(Raw{ID: l.ID}, fmt.Errorf("memory %s: %w", human.Quote(l.ID), err))
		return true
	}
	r.take(Raw{l.ID, v.LSN, v.Doc}, nil)
	return true
}

// file reads the version that the index names from the document's file. ok is false if the file does not have the
// bytes of that version; Engine.Find then returns the reason. file compares the hash of the bytes, so it need not
// check the path as docfile's Read does.
func (r *rawReader) file(l *engine.Listing) (doc []byte, ok bool) {
	k := r.st.inner.Engine.Kinds().Memories
	doc, info, err := k.Glance(k.FileName(l.ID), r.buf, min(l.Line.Size, places.StoredMost))
	r.buf = doc[:0]
	if err != nil || !engine.Matches(&l.Line, info) || sha256.Sum256(doc) != l.Line.ContentHash {
		return nil, false
	}
	return doc, true
}
