package search

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/text"
	"github.com/varve-db/varve/memstore"
)

// contentReader reads the contents of memories, past the cache: a search that
// reads everything would leave nothing else in it. It belongs to one goroutine.
type contentReader struct {
	s    *Search
	f    *engine.Filters
	take func(id string, content []byte) // valid during the call

	doc, buf []byte
	unread   []idError // the first ones
	more     int
	err      error // that ends it
}

// Over is of engine.Share: the error that ends the scan.
func (r *contentReader) Over() error { return r.err }

type idError struct {
	id  string
	err error
}

// Read takes the content of a memory; false ends the scan.
func (r *contentReader) Read(ctx context.Context, l engine.Listing) bool {
	if r.err = ctx.Err(); r.err != nil {
		return false
	}
	if !r.f.Reads() {
		if content, ok := r.quick(ctx, &l); ok {
			r.take(l.ID, content)
			return true
		}
	}
	v, err := r.s.Engine.Find(ctx, r.s.Engine.Kinds.Memories, l.ID, true)
	if errors.Is(err, errs.ErrNotFound) || err == nil && v.Expired(r.s.Engine.Env.Clock()) {
		return true // gone since
	}
	var m memstore.Memory
	if err == nil {
		m, err = r.s.Engine.Decode(l.ID, v)
	} else {
		err = fmt.Errorf("memory %s: %w", human.Quote(l.ID), err)
	}
	switch {
	case err == nil && r.f.Still(&m):
		r.take(l.ID, []byte(m.Content))
	case err == nil:
	case errors.Is(err, errs.ErrClosed), ctx.Err() != nil:
		r.err = err
		return false
	case len(r.unread) < MostUnreadable:
		r.unread = append(r.unread, idError{strings.Clone(l.ID), err})
	default:
		r.more++
	}
	return true
}

// quick finds the content in the file or in the log without decoding the
// document and without its hash: that is enough to rank it. What is shown in the
// end is read again, with all checks. Where anything is not as expected, ok is
// false.
func (r *contentReader) quick(ctx context.Context, l *engine.Listing) (content []byte, ok bool) {
	if !l.InLog {
		return r.file(l, time.UnixMicro(l.Line.Mtime))
	}
	e, err := r.s.Engine.Log.ReadAt(ctx, l.Line.Version)
	if err != nil || len(e.Key) == 0 || e.Key[0] != record.Memory || e.Key[1:] != l.ID || e.Delete {
		return nil, false
	}
	v, err := state.Read(&e)
	if err != nil {
		return nil, false
	}
	doc, plain := v.Plain()
	if !plain {
		if e.LSN < r.s.Engine.Log.Flushed() {
			if content, ok := r.file(l, e.Time); ok {
				return content, true
			}
		}
		if doc, err = r.s.Engine.Codec.Doc(&v, places.StoredMost); err != nil {
			return nil, false
		}
	}
	return r.content(l, doc)
}

func (r *contentReader) file(l *engine.Listing, mtime time.Time) (content []byte, ok bool) {
	doc, info, err := r.s.Engine.Kinds.Memories.Glance(docfile.FileName(l.ID), r.doc, min(l.Line.Size, places.StoredMost))
	r.doc = doc[:0]
	if err != nil || info.Size != l.Line.Size || !engine.SameTime(info.Mtime, mtime) {
		return nil, false
	}
	return r.content(l, doc)
}

func (r *contentReader) content(l *engine.Listing, doc []byte) (content []byte, ok bool) {
	var id []byte
	// Another memory's document may have been recycled into the place that was
	// opened, of the same size and even time.
	if id, content, r.buf, ok = text.Content(doc, r.buf); !ok || string(id) != l.ID {
		return nil, false
	}
	return content, true
}
