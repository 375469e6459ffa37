package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"iter"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

var (
	errBytes   = errors.New("the bytes of the piece do not match their SHA-256")
	errMissing = errors.New("the object is missing, although the head names it")
	errStop    = errors.New("the caller stops")
	errString  = errors.New("the piece does not begin where the one before it ends")
)

// Read returns the pieces of an epoch; see remote.Remote.
func (r *Remote) Read(ctx context.Context, epoch uint64, from segment.LSN) iter.Seq2[remote.Piece, error] {
	return func(yield func(remote.Piece, error) bool) {
		g := reading{r: r, epoch: epoch, from: from, yield: yield, lost: map[string]bool{}}
		if err := g.run(ctx); err != nil && !errors.Is(err, errStop) {
			yield(remote.Piece{}, err)
		}
	}
}

// reading is the state of one call of Read.
type reading struct {
	r     *Remote
	epoch uint64
	from  segment.LSN // position up to which pieces were yielded; at first the requested position
	yield func(remote.Piece, error) bool

	lost map[string]bool // data objects that are missing although the newest head names them
	gone string          // the data object that was last found missing
	end  mark            // where the previous entry ends; the zero value if unknown
	name string          // name of the object that was read last
	data []byte          // bytes of that object
}

// run yields the pieces of the epoch. If an object is missing because another process has changed the head, run reads
// the new head and continues. It ends at an error, or at the end of the epoch in the head that it has read last.
func (g *reading) run(ctx context.Context) error {
	for missing := ""; ; {
		d, _, err := g.r.load(ctx)
		if err != nil {
			return err
		}
		if err = g.pass(ctx, d); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		switch { // is it named by the head that was read after the object was found missing?
		case err.Error() != missing:
		case g.gone != "" && !g.lost[g.gone]:
			g.lost[g.gone] = true // its pieces are damaged, and the others are read
		default:
			return &errs.CorruptionError{Path: g.r.Place(), Offset: -1, Err: errors.Join(errMissing, err)}
		}
		missing = err.Error() // it has the name of the object, which no other object ever has
	}
}

// pass yields the pieces of the epoch to which the head d refers, from the position g.from on. If an object is
// missing, the error matches fs.ErrNotExist.
func (g *reading) pass(ctx context.Context, d *document) error {
	truncated := &remote.TruncatedError{Place: g.r.Place(), Epoch: g.epoch, From: g.from}
	known, there := false, false // whether an entry that ends at or before from, and one of the epoch, is kept
	g.end = mark{}
	err := g.r.walk(ctx, d, func(l *listRef) bool {
		if l.Epoch < g.epoch || l.Epoch == g.epoch && l.End < g.from {
			known = known || l.Epoch == g.epoch
			there = there || l.Epoch == g.epoch
			return true
		}
		return false
	}, func(e *entry) (bool, error) {
		switch {
		case e.Epoch < g.epoch:
			return true, nil
		case e.Epoch > g.epoch:
			return false, nil
		}
		there = true
		if e.To.LSN <= g.from {
			known, g.end = true, e.To
			return true, nil
		}
		switch {
		case e.From.LSN <= g.from:
		case known:
			return false, &errs.CorruptionError{Path: g.r.key(headName), Offset: -1, Err: errString}
		default:
			truncated.Oldest = e.From.LSN
			return false, truncated
		}
		known = true
		before := g.end
		if g.end = e.To; e.Kind == kindAnchor {
			return true, nil
		}
		b, err := g.bytes(ctx, d, e)
		if err == nil && before != (mark{}) && before != e.From {
			err = &errs.CorruptionError{Path: g.r.key(headName), Offset: -1, Err: errString}
		}
		if err != nil && !errors.Is(err, errs.ErrCorrupt) {
			return false, err
		}
		g.from = e.To.LSN
		if err != nil {
			if !g.yield(remote.Piece{}, err) {
				return false, errStop
			}
			return true, nil
		}
		if !g.yield(remote.Piece{From: past.Mark(e.From), To: past.Mark(e.To), Epoch: e.Epoch, Machine: e.Machine,
			Request: e.Request, Format: e.Format, Time: time.UnixMicro(e.Time).UTC(), Bytes: b}, nil) {
			return false, errStop
		}
		return true, nil
	})
	if err == nil && !there {
		return truncated
	}
	return err
}

// bytes returns the bytes of the piece of entry e, and verifies them.
func (g *reading) bytes(ctx context.Context, d *document, e *entry) ([]byte, error) {
	data, path := d.raw, g.r.key(headName)
	if e.Object != "" {
		path = g.r.key(e.Object)
		if g.lost[e.Object] {
			return nil, &errs.CorruptionError{Path: path, Offset: -1, Err: errMissing}
		}
		if g.name != e.Object {
			b, _, err := g.r.get(ctx, e.Object, mostInline+remote.MostPiece(e.geometry()))
			if errors.Is(err, fs.ErrNotExist) {
				g.gone = e.Object
			}
			if err != nil {
				return nil, err
			}
			g.name, g.data = e.Object, b
		}
		data = g.data
	}
	if e.At+e.Size <= int64(len(data)) {
		b := data[e.At : e.At+e.Size]
		if sum := sha256.Sum256(b); string(sum[:]) == string(e.SHA256) {
			return bytes.Clone(b), nil // the head and the object are used again
		}
	}
	return nil, &errs.CorruptionError{Path: path, Offset: e.At, Err: errBytes}
}

// entries calls visit for each entry that is kept, from the oldest to the newest. It omits the entries of lists for
// which skip returns true. It calls begin before the first entry, and again if it must start again because the head was
// changed.
func (r *Remote) entries(ctx context.Context, begin func(d *document), skip func(l *listRef) bool,
	visit func(e *entry) (bool, error)) error {
	for missing := ""; ; {
		d, _, err := r.load(ctx)
		if err != nil {
			return err
		}
		begin(d)
		err = r.walk(ctx, d, skip, visit)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err.Error() == missing {
			return &errs.CorruptionError{Path: r.Place(), Offset: -1, Err: errors.Join(errMissing, err)}
		}
		missing = err.Error()
	}
}

// Epochs returns the epochs of which entries are kept; see remote.Remote.
func (r *Remote) Epochs(ctx context.Context) (all []remote.Epoch, err error) {
	none := func(*listRef) bool { return false }
	err = r.entries(ctx, func(*document) { all = nil }, none, func(e *entry) (bool, error) {
		t := time.UnixMicro(e.Time).UTC()
		if n := len(all); n == 0 || all[n-1].Number != e.Epoch {
			all = append(all, remote.Epoch{Number: e.Epoch, Geometry: e.geometry(), Log: e.Log, From: past.Mark(e.From),
				Began: t})
		}
		last := &all[len(all)-1]
		last.Entries++
		last.To, last.Ended = past.Mark(e.To), t
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
