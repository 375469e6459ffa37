package s3

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

const (
	format     = 1
	headName   = "head"
	dataFolder = "data/"
	listFolder = "lists/"

	mostTries  = 100       // maximum number of attempts to change the head, which fail if another writer was faster
	mostInline = 256 << 10 // maximum number of bytes of pieces in the head
	mostLevel  = 8         // maximum level of lists
)

// limits are the limits that keep the head small. The head is the object with the newest entries, which each Append
// and Begin replaces.
type limits struct {
	inline  int // maximum number of bytes of pieces in the head
	entries int // maximum number of entries in the head
	kept    int // number of entries that stay in the head when the others become a list
	lists   int // number of lists of one level that become a list of the next level
}

var usual = limits{inline: mostInline, entries: 128, kept: 16, lists: 64}

// The kinds of an entry.
const (
	kindAnchor = "anchor"
	kindPiece  = "piece"
)

// document is the content of the head, the object with the newest entries and the references to the others.
type document struct {
	Format uint64    `json:"format"`
	Remote uuid.UUID `json:"remote"` // ID of the remote
	Write  uuid.UUID `json:"write"`  // random UUID that only this head has
	// Floor is the number of the oldest entry that is kept; 0 if there are no entries. Lists may have older ones.
	Floor   uint64    `json:"floor"`
	Lists   []listRef `json:"lists"`   // lists of older entries, oldest first
	Entries []entry   `json:"entries"` // newest entries, oldest first

	raw []byte // bytes of those pieces that are stored in the head
}

// listRef refers to an object that has a list of older entries, and describes which entries the list has.
type listRef struct {
	Object string `json:"object"`
	SHA256 []byte `json:"sha256"`
	Level  int    `json:"level"` // 0: a list of entries; otherwise a list of lists of the level below
	First  uint64 `json:"first"` // number of its first entry
	Last   uint64 `json:"last"`
	Epoch  uint64 `json:"epoch"` // epoch of its last entry
	End    uint64 `json:"end"`   // position at which its last entry ends
}

// list is the content of a list object, which has older entries. The names of these objects begin with lists/.
type list struct {
	Entries []entry   `json:"entries,omitempty"`
	Lists   []listRef `json:"lists,omitempty"`
}

// entry describes one entry of the remote: an anchor, with which an epoch begins, or a piece.
type entry struct {
	Kind    string    `json:"kind"`
	Number  uint64    `json:"number"` // number of the entry; numbers are consecutive
	Epoch   uint64    `json:"epoch"`
	Store   uuid.UUID `json:"store"`
	Segment uint64    `json:"segment_size"`
	Log     uint64    `json:"log"` // epoch of the store's own log
	From    mark      `json:"from"`
	To      mark      `json:"to"`
	Machine uuid.UUID `json:"machine"`
	Request uuid.UUID `json:"request"`
	Format  uint32    `json:"format"`
	Time    int64     `json:"time"` // Unix microseconds
	// The bytes of the piece are Size bytes from the offset At of an object, or of the head if Object is empty.
	Object string `json:"object,omitempty"`
	At     int64  `json:"at"`
	Size   int64  `json:"size"`
	SHA256 []byte `json:"sha256"`
}

// mark is past.Mark in JSON.
type mark struct {
	LSN uint64 `json:"lsn"`
	Sum uint64 `json:"sum"`
}

func (e *entry) geometry() segment.Geometry { return segment.Geometry{UUID: e.Store, Size: e.Segment} }

func (e *entry) position() remote.Position {
	return remote.Position{Number: e.Number, Geometry: e.geometry(), Log: e.Log, Epoch: e.Epoch, At: past.Mark(e.To),
		Machine: e.Machine, Request: e.Request, Format: e.Format, Time: time.UnixMicro(e.Time).UTC()}
}

// newest returns the position of the newest entry, or the zero value if there is no entry.
func (d *document) newest() remote.Position {
	if len(d.Entries) == 0 {
		return remote.Position{}
	}
	return d.Entries[len(d.Entries)-1].position()
}

// valid reports whether a program can have written the entry. inline is the number of bytes of pieces that the object
// with the entry itself has.
func (e *entry) valid(inline int64) bool {
	geo := e.geometry()
	switch {
	case e.Kind != kindAnchor && e.Kind != kindPiece, e.Number == 0, e.Epoch == 0,
		!geo.Valid(), e.Time < 0, e.Time > past.MostTime,
		len(e.SHA256) != sha256.Size, e.At < 0, e.Size < 0, e.Size > remote.MostPiece(geo),
		e.Kind == kindAnchor && (e.From != e.To || e.Size != 0), e.Kind == kindPiece && e.To.LSN <= e.From.LSN:
		return false
	}
	most := inline
	if e.Object != "" {
		if !isRandom(e.Object, dataFolder) {
			return false
		}
		most = mostInline + remote.MostPiece(geo)
	}
	return e.At <= most && e.Size <= most-e.At
}

// valid reports whether a program can have written the reference. It does not read the list.
func (l *listRef) valid() bool {
	return isRandom(l.Object, listFolder) && len(l.SHA256) == sha256.Size && l.Level >= 0 && l.Level <= mostLevel &&
		l.First > 0 && l.Last >= l.First
}

// check returns an error if a list or an entry is invalid, or if their numbers are not consecutive. inline is as in
// entry.valid.
func check(lists []listRef, entries []entry, inline int64) error {
	next := uint64(0)
	for i := range lists {
		l := &lists[i]
		if !l.valid() || next != 0 && l.First != next {
			return errForm
		}
		next = l.Last + 1
	}
	for i := range entries {
		e := &entries[i]
		if !e.valid(inline) || next != 0 && e.Number != next {
			return errForm
		}
		next = e.Number + 1
	}
	return nil
}

// load reads the current head from the object store. It returns the head and its ETag.
func (r *Remote) load(ctx context.Context) (*document, string, error) {
	b, tag, err := r.get(ctx, headName, mostPacked)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%s: %w -> check bucket and prefix", r.Place(), remote.ErrNoRemote)
	}
	if err != nil {
		return nil, "", err
	}
	d := &document{}
	if d.raw, err = unpack(magicHead, r.key(headName), b, d); err != nil {
		return nil, "", err
	}
	if d.Format > format {
		return nil, "", &errs.NewerError{Path: r.key(headName), Format: d.Format, Reads: format}
	}
	err = check(d.Lists, d.Entries, int64(len(d.raw)))
	if err != nil || d.Remote == uuid.Nil || len(d.Entries) == 0 && len(d.Lists) > 0 ||
		(d.Floor == 0) != (len(d.Entries) == 0) {
		return nil, "", &errs.CorruptionError{Path: r.key(headName), Offset: -1, Err: errForm}
	}
	if r.id != uuid.Nil && d.Remote != r.id {
		return nil, "", fmt.Errorf("%s: %w: the copy was removed, and another one was begun in its place", r.Place(),
			remote.ErrNoRemote)
	}
	r.remember(d, tag)
	return d, tag, nil
}

// remember keeps the head d and its ETag, so that the next change can begin with this head. The caller must not change
// d any more.
func (r *Remote) remember(d *document, tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.tag = d, tag
}

// store replaces the head whose ETag is tag by a new head. If tag is empty, it stores the first head. If another writer
// has changed the head since, the error is one for which refused returns true.
func (r *Remote) store(ctx context.Context, d *document, tag string) error {
	b, err := pack(magicHead, d, d.raw)
	if err != nil {
		return err
	}
	if tag == "" {
		tag = absent
	}
	tag, err = r.put(ctx, headName, b, tag)
	if err == nil && tag != "" {
		r.remember(d, tag)
	}
	return err
}

// change computes a new head from the current one and stores it. The function edit changes a copy of the head. If
// another writer stores a head first, change calls edit again with that head, at most mostTries times. If edit stores
// objects, their names must be new in each call. If edit returns false for the newest head, change stores nothing.
func (r *Remote) change(ctx context.Context, edit func(d *document) (bool, error)) error {
	r.mu.Lock()
	d, tag := r.seen, r.tag
	r.mu.Unlock()
	for try := 0; ; try++ {
		fresh := d == nil
		if fresh {
			var err error
			if d, tag, err = r.load(ctx); err != nil {
				return err
			}
		}
		next := *d
		next.Entries, next.Lists = slices.Clone(d.Entries), slices.Clone(d.Lists)
		next.raw = slices.Clip(d.raw)
		changed, err := edit(&next)
		switch {
		case !fresh && (!changed || err != nil): // edit has decided by a head that may not be the newest
			if ctx.Err() != nil {
				return ctx.Err()
			}
			d = nil
			continue
		case err != nil:
			return err
		case !changed:
			return nil
		}
		if next.Write, err = uuid.NewRandomFromReader(r.o.Random); err != nil {
			return err
		}
		if err = r.store(ctx, &next, tag); !refused(err) {
			return err
		}
		// Another writer was faster, or an earlier request of this call has succeeded and its answer was lost.
		if try == mostTries {
			return err
		}
		if d = nil; try > 0 {
			if err := r.o.Sleep(ctx, min(time.Second, 5*time.Millisecond<<min(try, 8))); err != nil {
				return err
			}
		}
	}
}

// add adds an entry, and data, the bytes of its piece, to the head d. If d becomes too large, add moves bytes into an
// object and older entries into a list.
func (r *Remote) add(ctx context.Context, d *document, e entry, data []byte) error {
	if e.Kind == kindAnchor { // so that a purge can remove the bytes of an epoch without those of the next
		if err := r.outsource(ctx, d); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(data)
	e.SHA256, e.Size, e.At = sum[:], int64(len(data)), int64(len(d.raw))
	d.Entries = append(d.Entries, e)
	d.raw = append(d.raw, data...)
	if d.Floor == 0 {
		d.Floor = e.Number
	}
	if len(d.raw) > r.most.inline || len(d.Entries) > r.most.entries {
		if err := r.outsource(ctx, d); err != nil {
			return err
		}
	}
	if len(d.Entries) > r.most.entries {
		if err := r.fold(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// outsource moves all bytes of pieces from the head d into one new object.
func (r *Remote) outsource(ctx context.Context, d *document) error {
	name, err := r.random(dataFolder)
	if err != nil {
		return err
	}
	if len(d.raw) == 0 {
		return nil
	}
	if _, err := r.put(ctx, name, d.raw, always); err != nil {
		return err
	}
	for i := range d.Entries {
		if e := &d.Entries[i]; e.Object == "" && e.Kind == kindPiece {
			e.Object = name
		}
	}
	for i := range d.Entries {
		if e := &d.Entries[i]; e.Kind == kindAnchor {
			e.At = 0
		}
	}
	d.raw = nil
	return nil
}

// fold moves the older entries from the head into a list. The bytes of these entries must be in objects already. If
// there are enough lists of one level, fold combines them into a list of the next level.
func (r *Remote) fold(ctx context.Context, d *document) error {
	n := len(d.Entries) - r.most.kept
	older := d.Entries[:n]
	last := &older[n-1]
	ref := listRef{First: older[0].Number, Last: last.Number, Epoch: last.Epoch, End: last.To.LSN}
	if err := r.storeList(ctx, &ref, &list{Entries: older}); err != nil {
		return err
	}
	d.Entries = slices.Clone(d.Entries[n:])
	d.Lists = append(d.Lists, ref)
	for level := 0; level < mostLevel; level++ {
		same := func(l listRef) bool { return l.Level == level }
		from := slices.IndexFunc(d.Lists, same)
		if from < 0 {
			break
		}
		to := from
		for to < len(d.Lists) && same(d.Lists[to]) {
			to++
		}
		if to-from < r.most.lists {
			break
		}
		parts := slices.Clone(d.Lists[from:to])
		end := parts[len(parts)-1]
		ref := listRef{Level: level + 1, First: parts[0].First, Last: end.Last, Epoch: end.Epoch, End: end.End}
		if err := r.storeList(ctx, &ref, &list{Lists: parts}); err != nil {
			return err
		}
		d.Lists = slices.Replace(d.Lists, from, to, ref)
	}
	return nil
}

func (r *Remote) storeList(ctx context.Context, ref *listRef, l *list) (err error) {
	if ref.Object, err = r.random(listFolder); err != nil {
		return err
	}
	b, err := pack(magicList, l, nil)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	ref.SHA256 = sum[:]
	_, err = r.put(ctx, ref.Object, b, always)
	return err
}

// loadList reads the list to which ref refers, and verifies it. If the object is missing, the error matches
// fs.ErrNotExist.
func (r *Remote) loadList(ctx context.Context, ref *listRef) (*list, error) {
	b, _, err := r.get(ctx, ref.Object, mostPacked)
	if err != nil {
		return nil, err
	}
	corrupt := func(err error) (*list, error) {
		return nil, &errs.CorruptionError{Path: r.key(ref.Object), Offset: -1, Err: err}
	}
	if sum := sha256.Sum256(b); string(sum[:]) != string(ref.SHA256) {
		return corrupt(errSum)
	}
	l := &list{}
	if _, err := unpack(magicList, r.key(ref.Object), b, l); err != nil {
		return nil, err
	}
	has := listRef{Object: ref.Object, SHA256: ref.SHA256, Level: ref.Level}
	switch {
	case ref.Level == 0 && len(l.Entries) > 0 && len(l.Lists) == 0:
		last := &l.Entries[len(l.Entries)-1]
		has.First, has.Last, has.Epoch, has.End = l.Entries[0].Number, last.Number, last.Epoch, last.To.LSN
	case ref.Level > 0 && len(l.Lists) > 0 && len(l.Entries) == 0:
		last := &l.Lists[len(l.Lists)-1]
		has.First, has.Last, has.Epoch, has.End = l.Lists[0].First, last.Last, last.Epoch, last.End
	}
	if !reflect.DeepEqual(has, *ref) || check(l.Lists, l.Entries, 0) != nil {
		return corrupt(errForm)
	}
	for i := range l.Lists {
		if l.Lists[i].Level >= ref.Level { // so that no list leads to itself
			return corrupt(errForm)
		}
	}
	return l, nil
}

// walk calls visit with the kept entries to which the head d refers, oldest first, until visit returns false. It does
// not read lists for which skip returns true. If an object is missing, the error matches fs.ErrNotExist.
func (r *Remote) walk(ctx context.Context, d *document, skip func(l *listRef) bool,
	visit func(e *entry) (more bool, err error)) error {
	more, err := r.walkLists(ctx, d, d.Lists, skip, visit)
	if !more || err != nil {
		return err
	}
	_, err = visitAll(ctx, d, d.Entries, visit)
	return err
}

func (r *Remote) walkLists(ctx context.Context, d *document, lists []listRef, skip func(l *listRef) bool,
	visit func(e *entry) (bool, error)) (more bool, err error) {
	for i := range lists {
		ref := &lists[i]
		if ref.Last < d.Floor || skip(ref) {
			continue
		}
		l, err := r.loadList(ctx, ref)
		if err != nil {
			return false, err
		}
		if more, err = r.walkLists(ctx, d, l.Lists, skip, visit); more && err == nil {
			more, err = visitAll(ctx, d, l.Entries, visit)
		}
		if !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

func visitAll(ctx context.Context, d *document, entries []entry, visit func(e *entry) (bool, error)) (bool, error) {
	for i := range entries {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if entries[i].Number < d.Floor {
			continue
		}
		if more, err := visit(&entries[i]); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}
