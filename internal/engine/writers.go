package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/writerfile"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// needsWriters are the features that a store must have before its entries carry the numbers of writers.
const needsWriters = wal.FeatureWriters | wal.FeatureFields

// writersRefused is the time for which a handle writes entries without a writer after it failed to raise the features,
// for example because an older program has the store open.
const writersRefused = time.Minute

// writing has the writer (program, agent or user) to which this handle attributes its entries, and the writers that the
// handle has read from wal/writers.
type writing struct {
	self    atomic.Pointer[writer.Writer] // writer of this handle; nil: entries have no writer
	opened  time.Time
	refused atomic.Int64 // time at which the features could not be raised, in Unix microseconds; 0: never
	torn    atomic.Bool  // the checksum of a line of wal/writers does not match: the next SaveWriters rewrites the file

	mu    sync.Mutex
	table *writer.Table // the contents of wal/writers
	size  int64         // size of wal/writers when table was read
}

// setWriter sets the writer to which this handle attributes its entries. If w is nil, the writer is unknown and
// entries have no writer. Each of the fields for host, process and start time that is empty in w gets the value of
// this handle.
func (eng *Engine) setWriter(w *writer.Writer) {
	if w == nil {
		eng.writing.self.Store(nil)
		return
	}
	eng.writing.self.Store(eng.described(*w, writer.Writer{}))
}

// described returns a copy of w. Empty fields are filled from base. If the host, the process or the start time is
// empty in w and in base, the copy has that of this handle.
func (eng *Engine) described(w, base writer.Writer) *writer.Writer {
	host := eng.env.FS.Host()
	w.Program = cmp.Or(w.Program, base.Program)
	w.Host = cmp.Or(w.Host, base.Host, host.Name)
	w.Agent = cmp.Or(w.Agent, base.Agent)
	w.Session = cmp.Or(w.Session, base.Session)
	w.Client = cmp.Or(w.Client, base.Client)
	w.ClientVersion = cmp.Or(w.ClientVersion, base.ClientVersion)
	w.Token = cmp.Or(w.Token, base.Token)
	w.PID = cmp.Or(w.PID, base.PID, host.PID)
	if w.Started.IsZero() {
		w.Started = base.Started
	}
	if w.Started.IsZero() {
		w.Started = eng.writing.opened
	}
	w.Fit()
	w = w.Described()
	return &w
}

type writerKey struct{}

// By returns a context that attributes entries to the writer w. Empty fields of w are filled from the handle's writer.
func By(ctx context.Context, w writer.Writer) context.Context {
	return context.WithValue(ctx, writerKey{}, &w)
}

// WriterIn returns the writer that By put into a context, or nil.
func WriterIn(ctx context.Context) *writer.Writer {
	w, _ := ctx.Value(writerKey{}).(*writer.Writer)
	return w
}

// ByWriter returns a context that attributes entries to w, a writer that WriterIn returned for another context. If w is
// nil, the entries are attributed to the writer of the handle.
func ByWriter(ctx context.Context, w *writer.Writer) context.Context {
	if w == nil {
		return ctx
	}
	return context.WithValue(ctx, writerKey{}, w)
}

// writerOf returns the writer to which entries written with a context are attributed: the writer that By put into the
// context, otherwise the writer of the handle. It returns nil if the writer is unknown.
func (eng *Engine) writerOf(ctx context.Context) *writer.Writer {
	self := eng.writing.self.Load()
	w := WriterIn(ctx)
	if w == nil {
		return self
	}
	if self == nil {
		self = new(writer.Writer)
	}
	return eng.described(*w, *self)
}

// WriterNow returns the writer of entries written with a context, including the number that the store has issued to the
// writer. It returns the zero Writer if the writer is unknown or has no number yet.
func (eng *Engine) WriterNow(ctx context.Context) writer.Writer {
	described := eng.writerOf(ctx)
	if described == nil {
		return writer.Writer{}
	}
	w := *described
	if w.Number = eng.state.OwnWriter(described); w.Number == 0 {
		return writer.Writer{}
	}
	return w
}

// Describe returns the description of the writer of entries written with a context, or nil if the writer is unknown.
func (eng *Engine) Describe(ctx context.Context) *writer.Writer { return eng.writerOf(ctx) }

// KeepWriters raises the features that entries with writers and causes need. If they cannot be raised now, KeepWriters
// returns an error. Append instead writes such entries without a writer.
func (eng *Engine) KeepWriters(ctx context.Context) error { return eng.log.RaiseNow(ctx, needsWriters) }

// Append is like wal.FileLog.Append, for entries that carry the number of their writer. Before the first entry of a
// writer, Append commits an entry that maps the number to the writer. Edits by hand have no writer, because the process
// that adopts an edit did not make the edit.
func (eng *Engine) Append(ctx context.Context, b *wal.Batch) (wal.LSN, error) {
	if w := eng.writerOf(ctx); w != nil && !edited(b) {
		n := eng.state.OwnWriter(w)
		if n == 0 {
			var err error
			if n, err = eng.explain(ctx, *w, b.Frees || deletes(b)); err != nil {
				return 0, err
			}
		}
		b.Writer = n
	}
	return eng.log.Append(ctx, b)
}

// ExplainWriter commits the entry that maps a number to the context's writer. A caller uses it before it takes a
// wal.Exclusive, because no feature can be raised while a wal.Exclusive is held.
func (eng *Engine) ExplainWriter(ctx context.Context) error {
	w := eng.writerOf(ctx)
	if w == nil || eng.state.OwnWriter(w) != 0 {
		return nil
	}
	_, err := eng.explain(ctx, *w, false)
	return err
}

func edited(b *wal.Batch) bool {
	return slices.ContainsFunc(b.Entries, func(e wal.Entry) bool { return e.Cause == wal.CauseEdited })
}

func deletes(b *wal.Batch) bool {
	return !slices.ContainsFunc(b.Entries, func(e wal.Entry) bool { return !e.Delete })
}

// explain commits the entry that maps a number to a writer, and returns that number. frees reports whether the
// caller's batch frees space, so that the entry may use the log's reserve, too. explain returns 0 if the store cannot
// record writers now, because a write must not fail for that reason.
func (eng *Engine) explain(ctx context.Context, w writer.Writer, frees bool) (uint32, error) {
	first := eng.log.Features()&wal.FeatureWriters == 0 // then nothing is explained yet
	if ok, err := eng.mayExplain(ctx); !ok {
		return 0, err
	}
	described := w
	for {
		newest, err := eng.state.NewestWriter()
		if err == nil && newest.Number == 0 && !first {
			newest.Number, err = eng.lostNumber(ctx)
		}
		if err != nil {
			return 0, err
		}
		// OwnWriter is called after NewestWriter: a writer of this handle that is explained behind newest.Since makes
		// the commit below conflict; one at or before it is found here. In the other order it could be explained twice.
		if n := eng.state.OwnWriter(&described); n != 0 {
			return n, nil
		}
		if newest.Number == math.MaxUint32 {
			newest.Number = 0 // a number alone does not identify a writer: see package writer
		}
		w.Number = newest.Number + 1
		line, err := w.Line()
		if err != nil {
			return 0, err
		}
		value, inflated := eng.codec.Encode(nil, &record.Record{Previous: newest.Since, Line: line})
		_, err = eng.log.Append(ctx, &wal.Batch{
			Entries:       []wal.Entry{{Key: state.WriterKey, Kind: record.KindWriter, Value: value, Inflated: inflated}},
			Preconditions: []wal.Precondition{{Key: state.WriterKey, LSN: newest.Since}},
			Frees:         frees,
		})
		var conflict *wal.ConflictError
		switch {
		case errors.As(err, &conflict): // another writer was faster, perhaps one of this handle
			if err := eng.log.CatchUp(ctx); err != nil {
				return 0, err
			}
			eng.RemapDue()
		case errors.Is(err, errs.ErrDiskFull):
			return 0, nil // there may be room for the next write
		case err != nil:
			return 0, err
		default:
			return eng.state.OwnWriter(&described), nil
		}
	}
}

// mayExplain reports whether the store can record writers and their numbers. If necessary, it first raises the features
// that this needs.
func (eng *Engine) mayExplain(ctx context.Context) (bool, error) {
	if eng.log.Features()&needsWriters == needsWriters {
		return true, nil
	}
	now := eng.env.Clock().UnixMicro()
	if at := eng.writing.refused.Load(); at != 0 && now >= at && now-at < writersRefused.Microseconds() {
		return false, nil
	}
	err := eng.log.RaiseNow(ctx, needsWriters)
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, errs.ErrReplaced), errors.Is(err, errs.ErrReadOnly), errors.Is(err, errs.ErrClosed):
		return false, err
	}
	eng.writing.refused.Store(now)
	eng.env.Logger.Warn("the store cannot record the writer: the history will show the writer as unknown", "err", err)
	return false, nil
}

// writersFile returns the store's file wal/writers.
func (eng *Engine) writersFile() *writerfile.File {
	return writerfile.New(eng.env.FS, eng.env.Dir, eng.log.UUID())
}

// explainedBelow returns the writer with the highest log position below pos that wal/writers has; see
// state.State.Explained.
func (eng *Engine) explainedBelow(pos uint64) (writer.Writer, error) {
	f := eng.writersFile()
	w, err := f.Below(pos)
	return w, eng.env.IOError("reading", f.Path(), err)
}

// readWriters reads wal/writers. whole is false if the file is missing or the checksum of a line does not
// match.
func (eng *Engine) readWriters() (t *writer.Table, size int64, whole bool, err error) {
	f := eng.writersFile()
	t, size, whole, err = f.Read()
	if !whole && size > 0 {
		eng.writing.torn.Store(true)
	}
	return t, size, whole, eng.env.IOError("reading", f.Path(), err)
}

// lostNumber returns the highest number of a writer that wal/writers, the log or the log's archive has. It is for
// a store whose wal/writers is missing or damaged.
func (eng *Engine) lostNumber(ctx context.Context) (highest uint32, err error) {
	t, _, whole, err := eng.readWriters()
	if err == nil && !whole {
		err = state.PastWriters(ctx, eng.log.Past(), eng.log.Durable(), t.Add)
	}
	for _, w := range t.All() {
		highest = max(highest, w.Number)
	}
	return highest, err
}

// SaveWriters writes to wal/writers, durably, the writers whose numbers the log explains below the position end.
// The caller calls SaveWriters before it writes an index up to end: once an index covers the entries with the
// explanations, the log may release them. The caller holds flush.lock, or no other process has the store open.
func (eng *Engine) SaveWriters(ctx context.Context, end wal.LSN) error {
	if eng.log.Features()&wal.FeatureWriters == 0 {
		return nil
	}
	recent := slices.DeleteFunc(eng.state.Writers(), func(w writer.Writer) bool { return w.Since >= end })
	newest, err := eng.explainedBelow(math.MaxUint64)
	if err != nil {
		return err
	}
	f := eng.writersFile()
	if torn := eng.writing.torn.Swap(false); newest.Number != 0 && newest.Since < end && !torn {
		recent = slices.DeleteFunc(recent, func(w writer.Writer) bool { return w.Since <= newest.Since })
		if len(recent) == 0 {
			return nil
		}
		done, err := f.Append(recent, eng.env.FileMode)
		if done || err != nil {
			return eng.env.IOError("writing", f.Path(), err)
		}
	}
	t, _, whole, err := eng.readWriters()
	// The number 1 is issued if file, log and archive explain none.
	if err == nil && !whole && (len(recent) == 0 || recent[0].Number != 1) {
		err = state.PastWriters(ctx, eng.log.Past(), end, t.Add)
	}
	if err != nil {
		return err
	}
	for _, w := range recent {
		t.Add(w)
	}
	// If the position of a line is end or later, the line was written for a log that an older copy has replaced, or the
	// log still has the entry of the line.
	list := slices.DeleteFunc(t.All(), func(w writer.Writer) bool { return w.Since >= end })
	if len(list) == 0 && whole {
		return nil // an empty file means that log and archive were read
	}
	err = eng.writeWriters(list)
	eng.writing.torn.Store(err != nil)
	return err
}

// writeWriters rewrites wal/writers with the given writers.
func (eng *Engine) writeWriters(list []writer.Writer) error {
	f := eng.writersFile()
	temp := filepath.Join(eng.env.Dir, "tmp", writerfile.Name+"."+eng.token)
	return eng.env.IOError("writing", f.Path(), f.Write(list, temp, eng.env.FileMode))
}

// RestoreWriters writes wal/writers of a store that is being restored, before the store has an index. list has the
// writers of the restored documents. store is the UUID of the store's log, which is still being opened.
func (eng *Engine) RestoreWriters(store [16]byte, list []writer.Writer) error {
	if len(list) == 0 {
		return nil
	}
	f := writerfile.New(eng.env.FS, eng.env.Dir, store)
	temp := filepath.Join(eng.env.Dir, "tmp", writerfile.Name+".new")
	return eng.env.IOError("writing", f.Path(), f.Write(list, temp, eng.env.FileMode))
}

// Writers returns the writers whose numbers the store knows, in the order in which the numbers were issued. If
// wal/writers is damaged, the result includes the writers that entries in the log and archive explain.
func (eng *Engine) Writers(ctx context.Context) (*writer.Table, error) {
	recent := eng.state.Writers() // first: writers that leave the state are in the file by then
	t, size, whole, err := eng.readWriters()
	if err == nil && !whole && size > 0 {
		err = state.PastWriters(ctx, eng.log.Past(), eng.log.Durable(), t.Add)
	}
	for _, w := range recent {
		t.Add(w)
	}
	return t, err
}

// Writer returns the writer that number identifies in the entry of a version. If the writer is unknown, the result has
// only the number.
func (eng *Engine) Writer(number uint32, version uint64) writer.Writer {
	unknown := writer.Writer{Number: number}
	if number == 0 {
		return unknown
	}
	if w, ok := eng.state.Writer(number, version); ok {
		return w
	}
	ws := &eng.writing
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.table != nil {
		if w, ok := ws.table.Of(number, version); ok {
			return w
		}
	}
	info, err := eng.env.FS.Stat(eng.writersFile().Path())
	if err != nil {
		return unknown
	}
	if ws.table == nil || info.Size != ws.size {
		t, size, _, err := eng.readWriters()
		if err != nil {
			return unknown
		}
		ws.table, ws.size = t, size
	}
	if w, ok := ws.table.Of(number, version); ok {
		return w
	}
	return unknown
}

// UnknownWriter is the name of the writer of a version whose writer is not known.
const UnknownWriter = "unknown"

// WrittenBy returns a function match, which reports whether a version was written by the writer name. The
// arguments of match are the number of the writer that the version has, and the version. name is a number of a
// writer, one of its names (writer.Writer.Is), or UnknownWriter. If a number was issued to several writers, it
// selects the last of them. No version below the position first was written by that writer.
func (eng *Engine) WrittenBy(ctx context.Context,
	name string) (match func(number uint32, version uint64) bool, first uint64, err error) {
	t, err := eng.Writers(ctx)
	if err != nil {
		return nil, 0, err
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil && n > 0 {
		w, _ := t.Of(uint32(n), math.MaxUint64) // the explanation of a number may be lost
		return func(number uint32, version uint64) bool { return number == uint32(n) && version >= w.Since }, w.Since, nil
	}
	if name == UnknownWriter {
		known := t.Where(func(*writer.Writer) bool { return true })
		return func(number uint32, version uint64) bool { return !known.Has(number, version) }, 0, nil
	}
	name = writer.FitName(name)
	set := t.Where(func(w *writer.Writer) bool { return w.Is(name) })
	return set.Has, set.First(), nil
}

// Resolve sets f.By to a function that reports whether a version was written by a writer that matches every name in
// f.Writers. If the store's list of writers cannot be read, the function matches no version.
func (eng *Engine) Resolve(ctx context.Context, f *Filters) {
	if len(f.Writers) == 0 {
		return
	}
	caught := eng.CatchUp(ctx) // a name may be that of a writer of another process
	for _, name := range f.Writers {
		by, _, err := eng.WrittenBy(ctx, name)
		if err == nil {
			err = caught
		}
		if err != nil {
			eng.env.Logger.Warn("the names of writers cannot be read", "err", err)
			by = func(uint32, uint64) bool { return false }
		}
		if before := f.By; before != nil {
			f.By = func(number uint32, version uint64) bool { return before(number, version) && by(number, version) }
		} else {
			f.By = by
		}
	}
}
