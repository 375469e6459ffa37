package past

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// Reader reads old and present versions of documents from a store's log and archive.
type Reader struct {
	ctx context.Context
	s   view.Source
}

// New returns a Reader of an open store.
func New(ctx context.Context, s view.Source) *Reader { return &Reader{ctx, s} }

// Version is a version of a document in the log or the archive.
type Version struct {
	ID      string
	Version wal.LSN
	Deleted bool
	Time    time.Time
	Hash    [32]byte
	archive bool
}

// All returns the versions in archive and log of the documents of kind k for whose ids match returns true. The map
// is keyed by id; the versions of a document are sorted from the oldest to the newest. All skips damaged parts.
func (v *Reader) All(k *kind.Kind, match func(id string) bool) (map[string][]Version, error) {
	all := map[string][]Version{}
	visit := func(e *wal.Entry, archive bool) {
		if len(e.Key) < 2 || e.Key[0] != k.Letter || !match(e.Key[1:]) {
			return
		}
		line, _, err := state.LineIn(e)
		if err != nil {
			return
		}
		p := Version{ID: string([]byte(e.Key[1:])), Version: e.LSN, Deleted: e.Delete, Time: e.Time, archive: archive,
			Hash: line.ContentHash}
		if list := all[p.ID]; len(list) > 0 && list[len(list)-1].Version >= p.Version {
			return // the segment is in the archive and not recycled yet
		}
		all[p.ID] = append(all[p.ID], p)
	}
	numbers, _, err := v.s.Log.Past().Archived()
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		if err := v.archivedEntries(n, func(e *wal.Entry) { visit(e, true) }); err != nil {
			return nil, err
		}
	}
	for e, err := range v.s.Log.Scan(v.ctx, v.Oldest()) {
		if errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrTruncated) {
			break // verify reports the damage; what is after it is read segment by segment
		}
		if err != nil {
			return nil, err
		}
		visit(&e, false)
	}
	return all, nil
}

// archivedEntries calls visit for the entries of an archived segment, up to the first damage. It is the only
// place where repair reads archived entries in their order; Document reads single entries.
func (v *Reader) archivedEntries(n uint64, visit func(*wal.Entry)) error {
	var plain []byte
	damage, err := v.s.Log.Past().ReadArchive(v.ctx, n, func(offset int64, b []byte) bool {
		if int64(len(plain)) != offset {
			return false // the preceding block is damaged
		}
		plain = append(plain, b...)
		return true
	})
	if places.Gone(err) || len(damage) > 0 && len(plain) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	geo := segment.Geometry{UUID: v.s.Log.UUID(), Size: v.s.Log.SegmentSize()}
	for at := geo.Start(n); int(at-geo.Start(n))+segment.HeaderSize <= len(plain); {
		rest := plain[at-geo.Start(n):]
		h, err := geo.ParseHeader(rest, at)
		if err != nil || segment.HeaderSize+int(h.Length) > len(rest) {
			return nil
		}
		payload := rest[segment.HeaderSize : segment.HeaderSize+int(h.Length)]
		if key, _, err := h.Check(payload); err == nil && len(key) > 0 {
			e := past.EntryIn(&h, payload)
			e.Key = strings.Clone(e.Key)
			visit(&e)
		}
		at = h.End()
	}
	return nil
}

// Document returns the content of a version from log or archive, if its bytes have this hash. from names the
// source; it is "" if neither has the version.
func (v *Reader) Document(k *kind.Kind, id string, version wal.LSN,
	hash [32]byte) (doc []byte, mtime time.Time, from string) {
	for _, source := range []struct {
		heals string
		read  func() (wal.Entry, error)
	}{
		{repair.ByLog, func() (wal.Entry, error) { return v.s.Log.ReadAt(v.ctx, version) }},
		{repair.ByArchive, func() (wal.Entry, error) { return v.s.Log.Past().ArchivedAt(v.ctx, version) }},
	} {
		e, err := source.read()
		if err != nil || e.Key != k.Key(id) || e.LSN != version {
			continue
		}
		doc, _, err := state.DocumentIn(v.s.Codec, &e, v.s.FileLimit)
		if err == nil && sha256.Sum256(doc) == hash {
			return doc, e.Time, source.heals
		}
	}
	return nil, time.Time{}, ""
}

// Oldest returns the position of the first entry of the log. This position may be below the first position that the
// overlay includes. Such older entries matter because a file may have a version that is already in the index.
func (v *Reader) Oldest() uint64 {
	from := v.s.State.From()
	list, _, err := v.s.Log.Past().SegmentFiles()
	if err != nil {
		return from
	}
	for _, s := range list {
		if s.Err == nil {
			return min(from, s.Start.Geometry.Start(s.Number)+segment.StartSize)
		}
	}
	return from
}

// Older reports whether match returns true for the version at pos or for an earlier version of the same document.
// It examines at most 1,000 versions, from the newest to the oldest.
func (v *Reader) Older(pos wal.LSN, match func(*index.Entry) bool) bool {
	n := 0
	return meets(pos, func(at wal.LSN) (e wal.Entry, ok bool) {
		if n++; n > 1000 {
			return e, false
		}
		e, err := v.s.Log.ReadAt(v.ctx, at)
		if err != nil {
			e, err = v.s.Log.Past().ArchivedAt(v.ctx, at)
		}
		return e, err == nil
	}, match)
}

// Passed reports whether match returns true for one of these versions of a document: the version in the index, whose
// line settled returns, and the versions that are only in the log, from the one at pos backwards. The document's file
// may still have any of these versions, because a flush skips a version if the document has a newer one.
func (v *Reader) Passed(pos wal.LSN, settled func() (index.Entry, error), match func(*index.Entry) bool) bool {
	if line, err := settled(); err == nil && match(&line) {
		return true
	}
	return meets(pos, func(at wal.LSN) (e wal.Entry, ok bool) {
		if at < v.s.State.From() {
			return e, false
		}
		e, err := v.s.Log.ReadAt(v.ctx, at)
		return e, err == nil
	}, match)
}

// meets calls match for the versions of a document, from the version at pos backwards, and returns true as soon as
// match returns true. It stops when read has no entry for a position.
func meets(pos wal.LSN, read func(at wal.LSN) (wal.Entry, bool), match func(*index.Entry) bool) bool {
	for pos != 0 {
		e, ok := read(pos)
		if !ok {
			return false
		}
		line, view, err := state.LineIn(&e)
		if err == nil && !e.Delete && match(&line) {
			return true
		}
		pos = view.Previous
	}
	return false
}
