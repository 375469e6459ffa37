package wal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/page"
	"github.com/varve-db/varve/wal/past"
)

// The commit. One goroutine of a process leads: it takes the queued requests as a group, writes the group under
// append.lock in one write, makes it durable under sync.lock, and wakes the other goroutines. append.lock is
// not released before the write has returned, and the tail is published only after that. So whatever follows
// the tail is not in the log, and the next writer overwrites it.
//
// A leader whose own ctx ends passes the lead on; no request fails because the ctx of another one ended.

// group has the requests that are written to the log in one write.
type group struct {
	requests []*request // requests of the group, accepted and refused, in order
	buf      []byte
	at       LSN // position in the log at which buf begins
	end      Mark
	entries  []Entry // entries as in the log, with control frames
	marks    []Mark
	// Position of the newest entry that the group writes for a key; 0: the group deletes the key.
	latest  map[string]LSN
	gone    map[string]LSN // position of the deletion, for a key that is absent
	beside  map[LSN]effects
	totals  map[string]uint64 // amounts that the group adds to running totals
	need    LSN               // position that must be durable before any request of the group is answered
	clock   int64             // commit time of the next frame
	reading int64             // current time of the clock
	apart   bool              // clock is too far ahead of reading: each entry records its reading as a field
	writers bool              // entries record the numbers of their writers as a field
	causes  bool              // entries record their causes as a field
	fields  [24]byte          // buffer for the encoded fields of one entry
}

// lead writes one group of requests, the first of which is req, the request of the calling goroutine. It then
// makes the goroutine of the next request the leader, makes its own group durable and answers the requests. So the
// next group is written while this one is synced, and one sync may cover several groups.
func (l *FileLog) lead(ctx context.Context, req *request) {
	err := l.q.gather(ctx)
	var g *group
	if err == nil {
		g, err = l.write(ctx, req)
	}
	if err != nil {
		// Nothing was taken from the queue: only this request fails.
		l.q.remove(req)
		req.err = l.orReplaced(err)
		l.q.pass()
		return
	}
	l.written(g, req)
	l.q.syncBegins(len(g.requests))
	l.q.pass()
	err = l.syncTo(ctx, g.need)
	l.q.syncEnds(len(g.requests))
	if err == nil {
		err = l.keeps(g.need)
	}
	if err == nil {
		if cerr := l.CatchUp(ctx); cerr != nil {
			// The group is durable; the failure to apply it in this process does not concern the writer.
			l.o.Logger.Error("the entries of a commit could not be applied", "err", cerr)
		}
	}
	for _, r := range g.requests {
		switch {
		case r == req && err != nil:
			l.unsettled(r, err)
		case r == req:
		case err != nil:
			r.wake <- wakeSync
		default:
			r.wake <- wakeDone
		}
	}
}

// settle makes the request durable after it was written. It is called if the leader that wrote the request failed to
// sync it.
func (l *FileLog) settle(ctx context.Context, r *request) {
	err := l.syncTo(ctx, r.end)
	if err == nil {
		err = l.keeps(r.end)
	}
	if err != nil {
		l.unsettled(r, err)
		return
	}
	if err := l.CatchUp(ctx); err != nil {
		l.o.Logger.Error("the entries of a commit could not be applied", "err", err)
	}
}

// unsettled sets the error of a request that cannot be made durable. The request either was written, or was refused
// because of an entry that is not durable.
func (l *FileLog) unsettled(r *request, err error) {
	if r.end == 0 { // evaluated, but nothing was written
		if replaced := l.Folder().Replaced(); replaced != nil {
			r.err = replaced
		}
		return
	}
	err = l.orReplaced(err)
	if r.err == nil && len(r.batch.Entries) > 0 {
		r.err = fmt.Errorf("%w: %w", errs.ErrOutcomeUnknown, err)
	} else {
		r.err = err
	}
}

// write takes a group of requests from the queue and writes it to the log. own is the request of the calling
// goroutine. If write returns an error, the queue is unchanged.
func (l *FileLog) write(ctx context.Context, own *request) (*group, error) {
	if err := l.CatchUp(ctx); err != nil { // read most of the log before taking the lock
		return nil, err
	}
	if err := l.lockSince(ctx, roleAppend, own.since); err != nil {
		return nil, err
	}
	defer l.unlock(roleAppend)
	return l.writeLocked(ctx, nil)
}

// writeLocked writes the given requests to the log, or the requests in the queue if list is nil. The caller holds
// append.lock.
//
// If the entries must record clock readings but the store lacks FeatureFields, writeLocked returns errNoFields. But if
// list is not nil, it writes the entries without the readings, because the holder of an Exclusive cannot raise the
// feature.
func (l *FileLog) writeLocked(ctx context.Context, list []*request) (*group, error) {
	if err := l.inPlaceFor(l.geo.Number(l.shared.Tail())); err != nil {
		return nil, err
	}
	if err := l.stillOurs(); err != nil {
		return nil, err
	}
	if err := l.appendable(ctx); err != nil {
		return nil, err
	}
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	tail := l.shared.Tail()
	if err := l.advance(ctx, tail, l.shared.Durable()); err != nil {
		return nil, err
	}
	if err := l.atTail(tail); err != nil {
		return nil, err
	}
	before := l.shared.Prepared()
	if list == nil {
		if l.lacksFields() {
			return nil, errNoFields
		}
		list = l.q.take()
	}
	g := l.gather(list)
	if len(g.buf) == 0 {
		return g, nil
	}
	err := l.put(g)
	if err != nil {
		if l.shared.Prepared() != before {
			l.unprepare(l.geo.Number(g.at), before)
		}
		for _, r := range g.requests {
			if r.end > tail { // written, or evaluated against an entry of this write
				r.err, r.end = err, 0
			}
		}
		g.need = min(g.need, tail)
	}
	return g, nil
}

// appendable returns an error if the log does not accept entries. After a failed sync, the log accepts entries again
// only after a successful sync; appendable attempts that sync.
func (l *FileLog) appendable(ctx context.Context) error {
	switch l.shared.Poison() {
	case page.Healthy:
		return nil
	case page.Damaged:
		return fmt.Errorf("%w: the log is damaged: run memctl verify", errs.ErrReadOnly)
	}
	if err := l.lock(ctx, roleSync, vfs.ModeExclusive); err != nil {
		return err
	}
	defer l.unlock(roleSync)
	if l.shared.Poison() == page.Healthy {
		return nil
	}
	return l.syncLocked()
}

// endSegment writes a header of zeros at the tail if the group, which starts at the position start, begins the
// next segment. A writer that was killed before it published the tail may have left frames at the tail that
// continue the log; without the zeros, a reader would read these frames.
func (l *FileLog) endSegment(start LSN) error {
	tail := l.state.w.At.LSN
	if start == tail || l.geo.Offset(tail) == 0 {
		return nil
	}
	number := l.geo.Number(tail)
	f, err := l.segment(number)
	if err == nil {
		var zero [segment.HeaderSize]byte
		_, err = f.WriteAt(zero[:min(segment.HeaderSize, l.geo.End(number)-tail)], l.geo.Offset(tail))
	}
	if err != nil {
		return l.ioError("ending", l.o.wal(segment.Name(number)), err)
	}
	return nil
}

// put writes the group into its segment at the tail of the log, and then publishes the new tail in the shared page. If
// the write fails, put writes a header of zeros at the tail, so that a recovery does not accept a part of the group.
func (l *FileLog) put(g *group) error {
	if !l.hasOpen(l.geo.Number(g.at)) { // the segment is opened by name
		if err := l.Folder().InPlace(); err != nil {
			return err
		}
	}
	if err := l.endSegment(g.at); err != nil {
		return err
	}
	f, err := l.segment(l.geo.Number(g.at))
	if err == nil {
		_, err = f.WriteAt(g.buf, l.geo.Offset(g.at))
	}
	if err != nil {
		// The part that was written may contain whole frames, which a recovery would accept: a header of zeros
		// at the tail removes them from the log.
		if f != nil {
			var zero [segment.HeaderSize]byte
			if _, zerr := f.WriteAt(zero[:min(segment.HeaderSize, len(g.buf))], l.geo.Offset(g.at)); zerr != nil {
				err = fmt.Errorf("%w: %w", errs.ErrOutcomeUnknown, err)
			}
		}
		if vfs.IsDiskFull(err) {
			l.o.Event(Event{Kind: EventDiskFull, Path: "wal", Err: err})
		}
		return l.ioError("writing", l.o.wal(segment.Name(l.geo.Number(g.at))), err)
	}
	s := &l.state
	for i := range g.entries {
		s.push(g.entries[i], g.marks[i])
		s.await(&g.entries[i], g.beside[g.entries[i].LSN])
	}
	s.owned = len(s.ahead)
	s.w.At, s.w.Linked = g.end, true
	l.shared.SetTail(g.end.LSN)
	l.kickPrepare(g.end.LSN)
	return nil
}

// gather evaluates the preconditions of the requests and encodes the accepted requests into one write. The caller
// holds append.lock and state.mu.
func (l *FileLog) gather(requests []*request) *group {
	s := &l.state
	if l.latest == nil {
		l.latest, l.gone, l.totals = map[string]LSN{}, map[string]LSN{}, map[string]uint64{}
	}
	clear(l.latest)
	clear(l.gone)
	clear(l.totals)
	g := &group{at: s.w.At.LSN, end: s.w.At, latest: l.latest, gone: l.gone, totals: l.totals, reading: l.now()}
	g.clock = max(g.reading, s.lastTime+1)
	if l.Features()&FeatureFields != 0 {
		g.apart, g.writers = apart(g.clock, g.reading), true
		g.causes = l.Features()&FeatureWriters != 0
		if g.reading == 0 {
			g.reading = 1 // a field with the value 0 is omitted
		}
	}
	nonce := l.o.Nonce()
	size, count := uint64(segment.StartSize+segment.HeaderSize), 1
	for _, r := range requests {
		size += g.size(r)
		count += len(r.batch.Entries)
	}
	g.buf, g.entries, g.marks = l.buffer(size), make([]Entry, 0, count), make([]Mark, 0, count)
	for i, r := range requests {
		waits, err := l.judge(g, r)
		if err == nil && len(r.batch.Entries) > 0 {
			var fits bool
			if fits, err = l.fit(g, r, nonce); err == nil && !fits {
				l.q.giveBack(requests[i:])
				break
			}
		}
		g.requests = append(g.requests, r)
		switch {
		case err == nil && len(r.batch.Entries) > 0:
			l.encode(g, r, nonce)
			r.end = g.end.LSN
		case waits && !(err != nil && r.batch.needsEarlyAnswer()):
			r.end = g.end.LSN
		}
		r.err = err
		g.need = max(g.need, r.end)
	}
	if len(g.buf) > 0 {
		rest := l.geo.End(l.geo.Number(g.at)) - g.end.LSN
		g.buf = append(g.buf, make([]byte, min(rest, segment.HeaderSize))...)
	}
	return g
}

// keptBuffer is the maximum size in bytes of a write buffer that is kept for the next write.
const keptBuffer = 1 << 20

// buffer returns an empty buffer for the next write, with a capacity of at least size. The caller holds append.lock.
func (l *FileLog) buffer(size uint64) []byte {
	if size > keptBuffer {
		return make([]byte, 0, size)
	}
	if uint64(cap(l.writing)) < size {
		l.writing = make([]byte, 0, max(size, 64<<10))
	}
	return l.writing[:0]
}

// judge evaluates the preconditions of a request against all entries before it in the log and in the group. waits
// reports whether the result depends on an entry that is not durable yet.
func (l *FileLog) judge(g *group, r *request) (waits bool, err error) {
	for i, p := range r.batch.Preconditions {
		if p.Key == "" {
			if last := max(l.state.lastEntry, g.last()); last >= p.LSN && last > 0 {
				return true, &ConflictError{Index: i, Precondition: p, Found: last}
			}
			continue
		}
		at, pending := g.latest[p.Key]
		gone := g.gone[p.Key]
		if !pending {
			if at, gone, pending, err = l.current(p); err != nil {
				return false, err
			}
		}
		more, grows := g.totals[p.Key]
		at, pending = at+more, pending || grows
		waits = waits || pending
		if at-p.LSN > p.Most || at == 0 && p.Chained && gone != p.Deletion {
			if l.onTop(g, r, i, at) {
				continue
			}
			return pending, &ConflictError{Index: i, Precondition: p, Found: at}
		}
	}
	return waits, nil
}

// size returns the number of bytes that a request takes in the log, including the fields of its entries.
func (g *group) size(r *request) (n uint64) {
	if !g.apart && !g.writers {
		return r.size
	}
	for i := range r.batch.Entries {
		e := &r.batch.Entries[i]
		f := g.fieldsOf(r.batch, e)
		n += segment.FrameSize(uint64(len(e.Key) + f.Size() + len(e.Value)))
	}
	return n
}

// fieldsOf returns the additional fields (writer, cause, clock reading) with which an entry of a batch is
// encoded.
func (g *group) fieldsOf(b *Batch, e *Entry) (f segment.Fields) {
	if g.apart {
		f.Reading = g.reading
	}
	if g.writers {
		if f.Writer = b.Writer; f.Writer == 0 {
			f.Writer = e.Writer
		}
	}
	if g.causes { // a log without writers keeps the bytes that it had before writers existed
		f.Cause, f.Restores = e.Cause, e.Restores
	}
	return f
}

func (g *group) last() LSN {
	for i := len(g.entries) - 1; i >= 0; i-- {
		if g.entries[i].Kind >= past.KindUser {
			return g.entries[i].LSN
		}
	}
	return 0
}

// fit reports whether the request can be added to the group's write: the write must not become too large, and must not
// exceed the segment. If the first request of a group does not fit into the segment, fit begins the next segment with a
// start frame.
func (l *FileLog) fit(g *group, r *request, nonce uint32) (bool, error) {
	number, size := l.geo.Number(g.at), g.size(r)
	inside := l.geo.Offset(g.at) != 0 || len(g.buf) > 0
	if inside && g.end.LSN+size <= l.geo.End(number) {
		if len(g.buf) > 0 && len(g.buf)+int(size) > groupLimit {
			return false, nil
		}
		return true, l.room(g.end.LSN+size, r.deletes)
	}
	if len(g.buf) > 0 {
		return false, nil
	}
	if inside {
		number++
	}
	if err := l.enter(number); err != nil {
		return false, err
	}
	h := segment.Header{Nonce: nonce, Durable: l.shared.Durable(), Time: g.clock}
	start := segment.Start{Geometry: l.geo, Number: number, PrevEnd: g.end.LSN, PrevSum: g.end.Sum}
	g.buf = segment.AppendStart(g.buf, start, &h)
	g.clock++
	g.at, g.end = l.geo.Start(number), Mark{LSN: h.End(), Sum: h.Sum}
	g.entries = append(g.entries, past.EntryIn(&h, nil))
	g.marks = append(g.marks, g.end)
	return true, l.room(g.end.LSN+size, r.deletes)
}

// encode appends the frames of an accepted request to the write buffer of the group. It also sets the fields of the
// request's entries that the log determines, such as LSN and Time.
func (l *FileLog) encode(g *group, r *request, nonce uint32) {
	durable := l.shared.Durable()
	for i := range r.batch.Entries {
		e := &r.batch.Entries[i]
		h := segment.Header{
			Kind: e.Kind, Nonce: nonce, LSN: g.end.LSN, Durable: durable,
			Time: g.clock, Previous: g.end.Sum, Inflated: e.Inflated,
		}
		if e.Inflated == 0 {
			h.Inflated = uint32(min(len(e.Key)+len(e.Value), math.MaxUint32))
		}
		if e.Delete {
			h.Flags |= segment.FlagDelete
		}
		e.More = i < len(r.batch.Entries)-1
		if e.More {
			h.Flags |= segment.FlagMore
		}
		f := g.fieldsOf(r.batch, e)
		e.Writer, e.Cause, e.Restores = f.Writer, f.Cause, f.Restores
		g.buf = l.geo.AppendFrameWith(g.buf, &h, e.Key, f.AppendTo(g.fields[:0]), e.Value)
		g.end = Mark{LSN: h.End(), Sum: h.Sum}
		e.LSN, e.Time = h.LSN, time.UnixMicro(g.clock).UTC()
		if e.Reading = e.Time; g.apart {
			e.Reading = time.UnixMicro(g.reading).UTC()
		}
		g.clock++
		e.Own = true
		g.entries = append(g.entries, *e)
		g.marks = append(g.marks, g.end)
		if e.Delete {
			g.latest[e.Key], g.gone[e.Key] = 0, e.LSN
		} else {
			g.latest[e.Key] = e.LSN
		}
		g.stands(e.LSN, l.effectsOf(e))
	}
}

// lockSince takes a lock for a request that has been waiting since the given time. It waits at most LockWait, counted
// from that time.
func (l *FileLog) lockSince(ctx context.Context, role int, since time.Time) error {
	if err := l.Folder().Replaced(); err != nil { // the files may belong to another process by now
		return err
	}
	ok, err := l.locks[role].TryLock(vfs.ModeExclusive)
	if ok && err == nil {
		l.shared.SetHolder(role, l.host.PID, l.o.Clock())
		return nil
	}
	left := l.o.LockWait - l.o.Clock().Sub(since)
	if left <= 0 && err == nil {
		return &errs.LockError{Path: l.o.wal(roleNames[role]), Holder: l.holder(role)}
	}
	return l.lock(ctx, role, vfs.ModeExclusive)
}

var errRewrite = errors.New("a sync of the log failed, and the data written before it cannot be verified")
