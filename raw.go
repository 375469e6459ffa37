package varve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
)

// Raw is a memory as its file has it, or will have it once it is flushed.
type Raw struct {
	ID      string
	Version uint64
	Doc     []byte // the exact bytes
}

// ScanRaw hands the memories that pass the filters to f, for those who read of many
// memories only what they need. It is several times as fast as Memories: f is called
// from several goroutines at once, in no order, and nothing is decoded, nor left in the
// cache. Doc is valid during the call, and not to be changed; of a memory that cannot be
// read f gets the error instead, with the id, and the others come all the same. What is
// written meanwhile is seen or not. The error that it returns is that of a listing which
// could not begin (ErrClosed, ErrMoved), the context's, or one of the index, behind which
// there may be more memories that f did not get.
func (st *Store) ScanRaw(ctx context.Context, f func(r Raw, err error), filters ...Filter) error {
	if err := st.engine.begun(); err != nil {
		return err
	}
	defer st.engine.ended()
	if err := st.engine.sight(ctx); err != nil {
		return err
	}
	chosen := filtersOf(filters)
	readers := make([]*rawReader, st.scanners())
	for i := range readers {
		readers[i] = &rawReader{st: st, f: &chosen, take: f}
	}
	var lines []error
	err := share(ctx, readers, func(yield func(listing) bool) error {
		for l, err := range st.engine.lines(ctx, st.engine.kinds.memories, chosen) {
			switch {
			case errors.Is(err, errs.ErrClosed), err != nil && ctx.Err() != nil:
				return err
			case err != nil && len(lines) < mostUnreadable:
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

// rawReader reads documents past the cache. It belongs to one goroutine.
type rawReader struct {
	st   *Store
	f    *filters
	take func(r Raw, err error)
	buf  []byte
	err  error // that ends it
}

func (r *rawReader) over() error { return r.err }

func (r *rawReader) read(ctx context.Context, l listing) bool {
	if r.err = ctx.Err(); r.err != nil {
		return false
	}
	if !l.inLog && !r.f.reads() {
		if doc, ok := r.file(&l); ok {
			r.take(Raw{l.id, l.line.Version, doc}, nil)
			return true
		}
	}
	if l.inLog {
		l.id = strings.Clone(l.id) // it is part of all that the frame says
	}
	v, err := r.st.engine.find(ctx, r.st.engine.kinds.memories, l.id, true)
	if errors.Is(err, errs.ErrNotFound) || err == nil && v.left(r.f, l.id, r.st.engine.env.Clock()) {
		return true // gone since
	}
	if err == nil && r.f.reads() {
		var m Memory
		if m, err = r.st.engine.decode(l.id, v); err == nil && !r.f.still(&m) {
			return true
		}
	}
	if errors.Is(err, errs.ErrClosed) || ctx.Err() != nil {
		r.err = errors.Join(err, ctx.Err())
		return false
	}
	if err != nil {
		r.take(Raw{ID: l.id}, fmt.Errorf("memory %s: %w", quote(l.id), err))
		return true
	}
	r.take(Raw{l.id, v.lsn, v.doc}, nil)
	return true
}

// file reads the version that the index names from its file; false where it is not what
// stands there, and find has to tell what that means. The hash makes up for the looks
// at the place that docfile's Read takes.
func (r *rawReader) file(l *listing) (doc []byte, ok bool) {
	doc, info, err := r.st.engine.kinds.memories.Glance(docfile.FileName(l.id), r.buf, places.StoredMost)
	r.buf = doc[:0]
	if err != nil || !matches(&l.line, info) || sha256.Sum256(doc) != l.line.ContentHash {
		return nil, false
	}
	return doc, true
}
