package varve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

func hash(b []byte) [32]byte { return sha256.Sum256(b) }

// judge decides about a file that is not what the index names, also after
// another look. Under flush.lock nobody of ours changes files, so it is
// somebody's edit, or damage.
//
// A valid edit is adopted: it goes through the log like every change. What
// cannot be adopted stays where it is, and is an error that says why; while the
// log still has the version, that is served instead.
func (st *Store) judge(ctx context.Context, k *kind, id string) (version, error) {
	if err := st.writable(); err != nil {
		return st.unread(ctx, k, id)
	}
	if err := st.log.LockFlush(ctx); err != nil {
		return version{}, err
	}
	v, err := st.judgeLocked(ctx, k, id)
	st.log.UnlockFlush()
	if errors.Is(err, ErrConflict) || errors.Is(err, errMoved) {
		return st.find(ctx, k, id, true) // somebody wrote it meanwhile
	}
	return v, err
}

// unread is judge's answer where nothing may be changed.
func (st *Store) unread(ctx context.Context, k *kind, id string) (version, error) {
	place, err := st.state.Find(k.letter, id)
	if err != nil {
		return version{}, err
	}
	if v, ok := st.fromLog(ctx, k, id, place.Version); ok {
		return v, nil
	}
	return version{}, &CorruptionError{Path: k.file(id), Offset: -1, LSN: place.Version, Err: errMismatch}
}

func (st *Store) judgeLocked(ctx context.Context, k *kind, id string) (version, error) {
	if err := st.sight(ctx); err != nil {
		return version{}, err
	}
	place, err := st.state.Find(k.letter, id)
	if err != nil {
		return version{}, err
	}
	v, err := st.read(ctx, k, id, place, true)
	if !errors.Is(err, errMismatch) {
		return v, err
	}
	name := docfile.FileName(id)
	data, info, rerr := k.Read(name, fileLimit)
	old := version{lsn: place.Version, line: place.Entry}
	if place.InLog {
		if old, _, err = st.frame(ctx, k, id, place.Version); err != nil {
			return version{}, err
		}
	}
	switch {
	case errors.Is(rerr, fs.ErrNotExist) && st.deletesByHand():
		if v, ok := st.fromLog(ctx, k, id, old.lsn); ok {
			return v, nil // who watches decides whether it was deleted
		}
		return st.restore(ctx, k, id, old, rerr)
	case errors.Is(rerr, fs.ErrNotExist), errors.Is(rerr, ErrCorrupt), notOurs(rerr):
		return st.restore(ctx, k, id, old, rerr)
	case rerr != nil:
		return version{}, st.ioError("reading", k.Path(name), rerr)
	case sameTime(info.Mtime, timeOf(&old.line)) && hash(data) != old.line.ContentHash:
		// Nobody edits without moving the time: rot, also where the file is now shorter.
		return st.restore(ctx, k, id, old, errors.New("its bytes have changed and its time has not"))
	case hash(data) == old.line.ContentHash:
		// Only the time was moved, by a copy or a checkout.
		old.doc = data
		return old, nil
	}
	p, err := k.parse(data, id)
	if err != nil {
		if v, ok := st.fromLog(ctx, k, id, old.lsn); ok {
			st.event(Event{Kind: EventDrift, ID: id, Path: k.file(id), Err: err, Note: "edited by hand, and not valid; the version before it is served"})
			return v, nil
		}
		return version{}, &CorruptionError{Path: k.file(id), Offset: -1, LSN: old.lsn,
			Err: fmt.Errorf("it was edited by hand and is not valid: correct it, or run memctl verify: %w", err)}
	}
	if !p.updated.IsZero() && !p.updated.Truncate(time.Microsecond).Equal(old.line.UpdatedAt.Truncate(time.Microsecond)) {
		// It was made of another version than the one that stood here: an editor
		// that had the file open for an hour saved over what came since.
		if v, err := st.conflict(ctx, k, old, &p); err == nil {
			return v, nil
		}
	}
	v, err = st.adopt(ctx, k, &p, data, old)
	if err == nil && !bytes.Equal(v.doc, data) { // it has another embedding than the file
		err = st.putBack(ctx, k, id, v)
	}
	return v, err
}

// conflict keeps the newer version where an edit was made of an older one: the
// edit is set aside and reported. When the log no longer has the newer one, the
// edit is all that there is.
func (st *Store) conflict(ctx context.Context, k *kind, old version, p *parsed) (version, error) {
	v, ok := st.fromLog(ctx, k, p.id, old.lsn)
	if !ok {
		return version{}, errMismatch
	}
	// One that was edited by hand itself says the time of the version before it, and
	// so does whoever goes on editing it.
	if stood, err := k.parse(v.doc, p.id); err == nil && p.updated.Equal(*stood.updated) {
		return version{}, errMismatch
	}
	why := fmt.Errorf("edited from the version of %s, while that of %s had replaced it", p.updated.Format(time.RFC3339Nano), old.line.UpdatedAt.Format(time.RFC3339Nano))
	st.event(Event{Kind: EventEdit, ID: p.id, Path: k.file(p.id), Err: why})
	return v, st.putBack(ctx, k, p.id, v)
}

// adopt takes the bytes of an edited file into the log as a new version, but for an
// embedding that is an older model's.
func (st *Store) adopt(ctx context.Context, k *kind, p *parsed, data []byte, old version) (version, error) {
	doc, stood, renewed, err := st.withoutOlder(ctx, k, p, data, old)
	if err != nil {
		return version{}, err
	}
	if renewed {
		if bytes.Equal(doc, stood.doc) {
			return stood, nil // nothing else was edited
		}
		again, err := k.parse(doc, p.id)
		if err != nil {
			return version{}, err
		}
		*again.created, *again.updated = *p.created, *p.updated // who adopts may have filled them in
		p, data = &again, doc
	}
	if p.created.IsZero() {
		*p.created = old.line.CreatedAt
	}
	if !p.updated.After(old.line.UpdatedAt) { // who edits by hand seldom thinks of it
		*p.updated = st.o.Clock().UTC()
	}
	number, counts, model := int64(0), p.vector, st.vectorsBy()
	if model.Older(old.lsn, vectorNumber(&old.line)) && old.lsn%8 == 0 {
		// What a person edits is not the embedding: it stays the older model's.
		number = int64(old.lsn)
		if counts, _, err = st.computedFor(ctx, &model, p.id, hash([]byte(p.content))); err != nil {
			return version{}, err
		}
	}
	line, err := p.line(data, number)
	if err != nil {
		return version{}, err
	}
	previous := old.lsn
	if previous == 0 { // a file that somebody made
		previous = st.state.Deletion(k.letter, p.id)
	}
	value, inflated := st.codec.Encode(nil, &record.Record{Previous: previous, Created: old.lsn == 0, Line: line, Vector: p.vector, Doc: data})
	b := &wal.Batch{
		Entries:       []wal.Entry{{Key: k.key(p.id), Kind: record.KindPut, Value: value, Inflated: inflated}},
		Preconditions: []wal.Precondition{{Key: k.key(p.id), LSN: old.lsn, Chained: old.lsn == 0, Deletion: previous}, {Key: state.ModelKey, LSN: model.LSN}},
	}
	if k == st.memories {
		if err := st.goesAlong(ctx, p.id, memoryChange{vector: counts}, b); err != nil {
			return version{}, err
		}
	}
	if _, err := st.log.Append(ctx, b); err != nil {
		return version{}, err
	}
	st.flusher.changed(st, len(b.Entries))
	st.health.edit()
	st.event(Event{Kind: EventAdopted, ID: p.id, LSN: b.Entries[0].LSN, Path: k.file(p.id)})
	v, _, err := st.frame(ctx, k, p.id, b.Entries[0].LSN)
	v.doc = data
	return v, err
}

// fromLog reads a version from the log or its archive, if they still reach back so far.
func (st *Store) fromLog(ctx context.Context, k *kind, id string, at wal.LSN) (version, bool) {
	v, view, err := st.frame(ctx, k, id, at)
	if errors.Is(err, ErrTruncated) {
		return st.fromArchive(ctx, k, id, at)
	}
	if err != nil || v.line.Deleted {
		return version{}, false
	}
	v.doc, err = st.codec.Doc(&view, fileLimit)
	return v, err == nil
}

// restore puts a file back that is gone or rotten, from the log; flush.lock is
// held. What stood there is set aside by the round, for it is not ours.
func (st *Store) restore(ctx context.Context, k *kind, id string, old version, why error) (version, error) {
	v, ok := st.fromLog(ctx, k, id, old.lsn)
	if !ok {
		return version{}, &CorruptionError{Path: k.file(id), Offset: -1, LSN: old.lsn,
			Err: fmt.Errorf("%w, and the log no longer has it: run memctl verify", why)}
	}
	st.event(Event{Kind: EventCorruption, ID: id, Path: k.file(id), Err: why})
	if !st.autoRepair() {
		return v, nil
	}
	if err := st.putBack(ctx, k, id, v); err != nil {
		st.o.Logger.Error("putting a damaged file back", "id", id, "err", err)
		return v, nil
	}
	st.event(Event{Kind: EventRestored, ID: id, Path: k.file(id), LSN: v.lsn})
	return v, nil
}

// putBack puts a version into its file again; flush.lock is held. What stands
// there is not ours, and the round sets it aside.
func (st *Store) putBack(ctx context.Context, k *kind, id string, v version) error {
	c := docfile.Change{
		Folder: k.Folder, Name: docfile.FileName(id), Mtime: timeOf(&v.line), ID: id, Version: v.lsn,
		Data: func() ([]byte, error) { return v.doc, nil },
	}
	result, err := st.flusher.files.Round(ctx, []docfile.Change{c})
	st.edited(ctx, result.Edits)
	if err != nil || len(result.Blocked) == 0 {
		return err
	}
	if err := st.moveAway(&c, result.Blocked[0].Err); err != nil {
		return err
	}
	if result, err = st.flusher.files.Round(ctx, []docfile.Change{c}); err == nil && len(result.Blocked) > 0 {
		err = result.Blocked[0].Err
	}
	st.edited(ctx, result.Edits)
	return err
}

func (st *Store) autoRepair() bool {
	st.config.mu.Lock()
	defer st.config.mu.Unlock()
	return st.config.c.autoRepair()
}
