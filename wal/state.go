package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// state has the position up to which this process has read the log, and the position up to which it has applied the
// entries. The entries between these two positions may not be durable yet. They wait in the field ahead, and only
// preconditions take them into account.
type state struct {
	mu        sync.Mutex
	w         past.Walker // w.At is the position up to which this process has read
	applied   Mark
	appliedAt atomic.Uint64
	from      atomic.Uint64 // position of the mark at which this process began to apply

	ahead     []Entry // entries and control frames that are not applied yet, in order
	marks     []Mark  // mark at the end of each element of ahead
	owned     int     // number of elements of ahead that are copied out of the walker's buffer
	pending   map[string]LSN
	deleted   map[string]bool
	beside    map[LSN]effects   // effects of entries that are not applied, by their LSN
	totals    map[string]uint64 // amounts that these entries add to running totals
	lastEntry LSN               // position of the newest entry read
	lastTime  int64             // commit time of the newest frame read, in Unix microseconds
}

// mostClock is the highest time that the log uses for the clock. Commit times become the mtimes of files, and file
// systems do not support times after 2446. So a clock after the beginning of 2300 counts as this time. A time after the
// beginning of 2399 in a frame or a checkpoint is ignored, because the next commit would have an even later time.
const mostClock = 10413792000_000000 // microseconds since 1970

func (l *FileLog) now() int64 { return min(l.o.Clock().UnixMicro(), mostClock) }

// CatchUp applies all entries that are durable now.
func (l *FileLog) CatchUp(ctx context.Context) error {
	if l.o.ReadOnly {
		if err := l.watchPage(ctx); err != nil || l.private.Load() {
			return err
		}
		if err := l.still(); err != nil {
			return err
		}
	}
	durable := l.shared.Durable()
	if l.state.appliedAt.Load() >= durable || l.place.left.Load() {
		return nil
	}
	err := l.advanceTo(ctx, durable)
	if err != nil && !l.o.ReadOnly && ctx.Err() == nil && l.Folder().InPlace() != nil {
		return nil // the rest is gone with the log; what was read before is served
	}
	return err
}

func (l *FileLog) advanceTo(ctx context.Context, durable LSN) error {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.advance(ctx, durable, durable)
}

// advance reads the log up to the position in the argument read, and applies the entries below the position in the
// argument durable. The caller holds state.mu. If the log no longer has the position up to which this process has
// read, advance starts again from the newest views.
func (l *FileLog) advance(ctx context.Context, read, durable LSN) error {
	err := l.readTo(read, durable)
	for tries := 0; errors.Is(err, errs.ErrTruncated) && tries < 10; tries++ {
		if err = l.restart(ctx); err != nil {
			continue
		}
		durable = l.shared.Durable()
		err = l.readTo(max(read, durable), durable)
	}
	return err
}

// readTo reads frames up to limit, and applies the frames below the position durable.
func (l *FileLog) readTo(limit, durable LSN) error {
	s := &l.state
	if err := l.applyTo(durable); err != nil {
		return err // entries that could not be applied before come first, and nothing accumulates after them
	}
	if !l.o.ReadOnly { // while a process is attached, what is written does not change
		s.w.Ahead = l.shared.Tail() // one read for this call and the next
	}
	for s.w.At.LSN < limit {
		// One buffer at a time, because the payloads are in it.
		for n := 0; s.w.At.LSN < limit && (n == 0 || s.w.Buffered()); n++ {
			h, payload, err := s.w.Next(limit)
			var none *past.NoFrameError
			if errors.As(err, &none) {
				return l.missing(none)
			}
			if err != nil {
				return err
			}
			l.push(&h, payload)
		}
		err := l.applyTo(durable)
		s.own(l.effectsOf) // even after an error: the buffer is reused
		if err != nil {
			return err
		}
	}
	return l.applyTo(durable)
}

// push adds a frame that was just read to the end of the list ahead, which has the entries that are not applied yet.
func (l *FileLog) push(h *segment.Header, payload []byte) {
	l.state.push(past.EntryIn(h, payload), Mark{LSN: h.End(), Sum: h.Sum})
}

func (s *state) push(e Entry, end Mark) {
	s.ahead = append(s.ahead, e)
	s.marks = append(s.marks, end)
	if at := e.Time.UnixMicro(); at <= past.MostTime {
		s.lastTime = max(s.lastTime, at)
	}
	if e.Kind >= past.KindUser {
		s.lastEntry = e.LSN
	}
}

// applyTo applies the entries in the list ahead whose positions are below durable. If Machine.Apply fails, the entries
// stay in the list.
func (l *FileLog) applyTo(durable LSN) error {
	s := &l.state
	n := 0
	for n < len(s.ahead) && s.marks[n].LSN <= durable {
		n++
	}
	// Never apply a part of a batch. durable is at the end of a batch, so this only matters if the shared page
	// is wrong.
	for n > 0 && s.ahead[n-1].More {
		n--
	}
	if n == 0 {
		return nil
	}
	for from := 0; from < n; {
		to := from
		for to < n && s.ahead[to].Kind >= past.KindUser {
			to++
		}
		if to > from {
			if err := l.o.Machine.Apply(s.ahead[from:to]); err != nil {
				return err
			}
		}
		for to < n && s.ahead[to].Kind < past.KindUser {
			to++
		}
		from = to
	}
	s.applied = s.marks[n-1]
	s.appliedAt.Store(s.applied.LSN)
	s.drop(n)
	return nil
}

// drop removes the first n entries from the list ahead, and what is recorded of these entries for preconditions.
func (s *state) drop(n int) {
	if len(s.pending) > 0 {
		for _, e := range s.ahead[:n] {
			if s.pending[e.Key] == e.LSN {
				delete(s.pending, e.Key)
				if len(s.deleted) > 0 {
					delete(s.deleted, e.Key)
				}
			}
			s.dropBeside(e.LSN)
		}
	}
	rest := copy(s.ahead, s.ahead[n:])
	clear(s.ahead[rest:])
	s.ahead = s.ahead[:rest]
	s.marks = s.marks[:copy(s.marks, s.marks[n:])]
	s.owned = max(0, s.owned-n)
}

// own copies those entries of the list ahead that are still in the walker's buffer, because the walker will use its
// buffer again. It also records the effects of these entries for preconditions. effectsOf returns the effects of an
// entry.
func (s *state) own(effectsOf func(*Entry) effects) {
	size := 0
	for _, e := range s.ahead[s.owned:] {
		size += len(e.Key) + len(e.Value)
	}
	all := make([]byte, 0, size) // one allocation: the entries are applied soon, and together
	for i := s.owned; i < len(s.ahead); i++ {
		e := &s.ahead[i]
		at, key := len(all), len(e.Key)
		all = append(append(all, e.Key...), e.Value...)
		own := all[at:len(all):len(all)]
		e.Key, e.Value = unsafeString(own[:key]), own[key:]
		s.await(e, effectsOf(e))
	}
	s.owned = len(s.ahead)
}

// await records an entry that is not applied yet, so that preconditions take it into account: under its own key, and
// with its effects b.
func (s *state) await(e *Entry, b effects) {
	if e.Kind < past.KindUser {
		return
	}
	s.pending[e.Key] = e.LSN
	if e.Delete {
		s.deleted[e.Key] = true
	} else if len(s.deleted) > 0 {
		delete(s.deleted, e.Key)
	}
	s.awaitBeside(e.LSN, b)
}

// current returns, according to all entries that were read, the position of the newest entry of a precondition's
// key, or the running total that the key names. If value is 0 and the precondition is Chained, deletion is the LSN
// of the deletion of the key. waits reports whether the result depends on an entry that is not durable yet.
func (l *FileLog) current(p Precondition) (value, deletion LSN, waits bool, err error) {
	if at, ok := l.state.pending[p.Key]; ok {
		if l.state.deleted[p.Key] {
			return 0, at, true, nil
		}
		return at, 0, true, nil
	}
	if p.Hint != 0 && l.o.Machine.Unchanged(p) {
		value = p.LSN
	} else if value, err = l.o.Machine.Current(p.Key); err != nil {
		return 0, 0, false, err
	}
	if value == 0 && p.Chained {
		deletion = l.o.Machine.Deletion(p.Key)
	}
	more, waits := l.state.totals[p.Key]
	return value + more, deletion, waits, nil
}

// missing returns the error for a position at which the log has no valid frame. Either this part of the log was
// released, or the log is damaged.
func (l *FileLog) missing(none *past.NoFrameError) error {
	if l.left(none.At) {
		return &errs.TruncatedError{Oldest: l.shared.Spilled()}
	}
	return l.corruption(none)
}

// left reports whether pos may have been released from the log. This is so if pos is below Spilled, or if
// stillOurs returns an error, for example because another process has recovered the log. left returns false in a
// private handle (see openPrivate).
func (l *FileLog) left(pos LSN) bool {
	if l.private.Load() {
		return false
	}
	return pos < l.shared.Spilled() || l.stillOurs() != nil
}

func (l *FileLog) corruption(none *past.NoFrameError) *errs.CorruptionError {
	number := l.geo.Number(none.At)
	return &errs.CorruptionError{
		Path: "wal/" + segment.Name(number), Segment: number, Offset: l.geo.Offset(none.At), LSN: none.At, Err: none,
	}
}

// restart starts again from the newest views. It is called if the log no longer has the position up to which this
// process has read, because segments were released. The caller holds state.mu.
func (l *FileLog) restart(ctx context.Context) error {
	l.forgetFiles(l.geo.Number(l.shared.Spilled()))
	c, err := readCheckpoint(l.o.FS, l.o.Dir)
	if err != nil {
		return fmt.Errorf("reading the checkpoint again, because the log was released: %w", err)
	}
	if err := l.admit(c.Features); err != nil {
		return err
	}
	return l.begin(ctx, c.Spilled, Start{})
}

// firstMark reports whether pos is the position directly after the first start frame of a log, which is a start
// frame that refers to no earlier segment.
func (l *FileLog) firstMark(pos LSN) bool {
	if l.geo.Offset(pos) != segment.StartSize {
		return false
	}
	f, err := l.segment(l.geo.Number(pos))
	if err != nil {
		return false
	}
	s, _, err := past.ReadStart(f)
	return err == nil && s.PrevEnd == 0
}

// begin calls Machine.Begin to load the views as of the mark spilled, and continues reading and applying the log from
// this mark.
func (l *FileLog) begin(ctx context.Context, spilled Mark, start Start) error {
	start.UUID, start.Spilled, start.Sum = l.geo.UUID, spilled.LSN, spilled.Sum
	start.Fresh, start.Past = l.firstMark(spilled.LSN), l.Past()
	if err := l.o.Machine.Begin(ctx, start); err != nil {
		return err
	}
	s := &l.state
	w := past.NewWalker(l.geo, l.source, spilled)
	w.Linked = true
	w.Reuse(&s.w)
	s.w = w
	s.applied = spilled
	s.from.Store(spilled.LSN)
	s.appliedAt.Store(spilled.LSN)
	s.ahead, s.marks, s.owned = nil, nil, 0
	s.forgetPending()
	s.lastEntry = max(s.lastEntry, spilled.LSN-1) // there may be an entry anywhere before
	l.free.start(spilled.LSN)
	return nil
}
