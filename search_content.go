package varve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/text"
)

// contentReader reads the contents of memories, past the cache: a search that
// reads everything would leave nothing else in it. It belongs to one goroutine.
type contentReader struct {
	st   *Store
	f    *filters
	take func(id string, content []byte) // valid during the call

	doc, buf []byte
	unread   []idError // the first ones
	more     int
	err      error // that ends it
}

func (r *contentReader) over() error { return r.err }

type idError struct {
	id  string
	err error
}

// read takes the content of a memory; false ends the scan.
func (r *contentReader) read(ctx context.Context, l listing) bool {
	if r.err = ctx.Err(); r.err != nil {
		return false
	}
	if !r.f.reads() {
		if content, ok := r.quick(ctx, &l); ok {
			r.take(l.id, content)
			return true
		}
	}
	v, err := r.st.engine.find(ctx, r.st.engine.kinds.memories, l.id, true)
	if errors.Is(err, errs.ErrNotFound) || err == nil && v.expired(r.st.engine.env.Clock()) {
		return true // gone since
	}
	var m Memory
	if err == nil {
		m, err = r.st.engine.decode(l.id, v)
	} else {
		err = fmt.Errorf("memory %s: %w", quote(l.id), err)
	}
	switch {
	case err == nil && r.f.still(&m):
		r.take(l.id, []byte(m.Content))
	case err == nil:
	case errors.Is(err, errs.ErrClosed), ctx.Err() != nil:
		r.err = err
		return false
	case len(r.unread) < mostUnreadable:
		r.unread = append(r.unread, idError{strings.Clone(l.id), err})
	default:
		r.more++
	}
	return true
}

// quick finds the content in the file or in the log without decoding the
// document and without its hash: that is enough to rank it. What is shown in the
// end is read again, with all checks. Where anything is not as expected, ok is
// false.
func (r *contentReader) quick(ctx context.Context, l *listing) (content []byte, ok bool) {
	if !l.inLog {
		return r.file(l, time.UnixMicro(l.line.Mtime))
	}
	e, err := r.st.engine.log.ReadAt(ctx, l.line.Version)
	if err != nil || len(e.Key) == 0 || e.Key[0] != record.Memory || e.Key[1:] != l.id || e.Delete {
		return nil, false
	}
	v, err := state.Read(&e)
	if err != nil {
		return nil, false
	}
	doc, plain := v.Plain()
	if !plain {
		if e.LSN < r.st.engine.log.Flushed() {
			if content, ok := r.file(l, e.Time); ok {
				return content, true
			}
		}
		if doc, err = r.st.engine.codec.Doc(&v, places.StoredMost); err != nil {
			return nil, false
		}
	}
	return r.content(l, doc)
}

func (r *contentReader) file(l *listing, mtime time.Time) (content []byte, ok bool) {
	doc, info, err := r.st.engine.kinds.memories.Glance(docfile.FileName(l.id), r.doc, places.StoredMost)
	r.doc = doc[:0]
	if err != nil || info.Size != l.line.Size || !sameTime(info.Mtime, mtime) {
		return nil, false
	}
	return r.content(l, doc)
}

func (r *contentReader) content(l *listing, doc []byte) (content []byte, ok bool) {
	var id []byte
	// Another memory's document may have been recycled into the place that was
	// opened, of the same size and even time.
	if id, content, r.buf, ok = text.Content(doc, r.buf); !ok || string(id) != l.id {
		return nil, false
	}
	return content, true
}
