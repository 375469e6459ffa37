package words

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/narrow"
	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/internal/words/rows"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Orders answers requests that need no words: pages of a sorted listing, counts, and lists of sessions. It reads the
// existing files of the word index, and the log after these files. It does not read the texts and never builds the word
// index from the documents. If the word index has no usable files, Orders returns false as ok for every request, and
// the caller reads the index of the store instead.
type Orders struct {
	eng     *engine.Engine
	files   lines
	follow  engine.Follower
	damaged func()

	mu       sync.Mutex // guards the following fields
	set      *words.Set // the rows from which the cached sessions were computed
	sessions []rows.Session
	from     int64 // the sessions are valid from this time on
	until    int64 // the sessions are valid before this time
}

// NewOrders returns a new Orders; the caller must Close it. damaged is called when the view's files are found
// damaged.
func NewOrders(eng *engine.Engine, damaged func()) *Orders {
	o := &Orders{eng: eng, files: lines{files: files{Words: newWords(eng, memories{}, 1)}}, damaged: damaged}
	o.files.lean = true
	o.follow.Fold, o.follow.Stale = &o.files, o.files.came
	return o
}

// Close releases the mapped files. No call may be in progress.
func (o *Orders) Close() error { return o.files.Close() }

// Forget releases the mapped files, unless a call is reading them at the moment.
func (o *Orders) Forget() error { return o.follow.Forget(false, o.files.Close) }

// lines is the word index without the words, as a fold that Orders keeps up to date.
type lines struct {
	files
	absent bool
}

// Reset implements view.Fold: it loads the files of the word index.
func (r *lines) Reset(ctx context.Context, set *index.Set) error {
	ok, err := r.resume(ctx, set)
	if errors.Is(err, engine.ErrMoved) || ctx.Err() != nil {
		return err
	}
	if r.absent = !ok || !rows.Sorted(r.set); r.absent {
		r.begin()
	}
	return nil
}

// Covered implements view.Fold: it reports whether the content stays valid with a newer index.
func (r *lines) Covered(set *index.Set) bool { return !r.absent && r.goesOn(set) }

// Apply implements view.Fold: it adds the rows of the document in a log entry, without words, or removes the rows of
// the deleted document.
func (r *lines) Apply(ctx context.Context, set *index.Set, e *wal.Entry) error {
	if r.absent {
		return nil
	}
	return r.Words.Apply(ctx, set, e)
}

// withSnapshot calls use with rows that include all commits before the call of withSnapshot. ok is false if the
// word index has no usable files.
func (o *Orders) withSnapshot(ctx context.Context, use func(*Snapshot) error) (ok bool, err error) {
	if err := o.eng.CatchUp(ctx); err != nil {
		return false, err
	}
	s := &Snapshot{lean: true}
	err = o.follow.With(ctx, o.eng, func(*index.Set, int64) error {
		if o.files.absent {
			return nil
		}
		if err := vfs.Guard(o.files.settle); err != nil {
			return err
		}
		s.Set, s.Analyzer, s.From = o.files.set, o.files.an.Again(), o.files.sources
		for _, m := range o.files.maps {
			m.refs.Add(1)
			s.maps = append(s.maps, m)
		}
		return nil
	})
	if err == nil && s.Set != nil {
		err = vfs.Guard(func() error { return use(s) })
		ok = true
	}
	if rerr := s.Release(); err == nil {
		err = rerr
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, errs.ErrClosed):
		return false, err
	case err != nil:
		o.eng.Env().Logger.Warn("the sort orders of the memories cannot be read; using the index instead", "path",
			o.eng.ViewFolder(Name).Path, "err", err)
		damaged := errors.Is(err, errs.ErrCorrupt)
		_ = o.follow.Forget(true, func() error {
			if damaged {
				o.files.bad = o.files.seen
			}
			return nil
		})
		if damaged {
			o.damaged()
		}
		return false, nil
	case !ok:
		return false, o.follow.Forget(false, func() error { return nil }) // there may be files the next time
	}
	return true, nil
}

// Sessions returns the sessions that have memories, in the order of the index. The caller must not change them.
func (o *Orders) Sessions(ctx context.Context) (list []rows.Session, ok bool, err error) {
	ok, err = o.withSnapshot(ctx, func(s *Snapshot) (err error) {
		set := s.Set
		o.mu.Lock()
		defer o.mu.Unlock()
		now := o.eng.Env().Clock().UnixMicro()
		if o.set != set || now < o.from || now >= o.until {
			o.set = nil
			if o.sessions, o.from, o.until, err = rows.Sessions(set, now, SessionKey); err != nil {
				return err
			}
			o.set = set
		}
		list = o.sessions
		return nil
	})
	return list, ok, err
}

// SessionKey returns the key by which the index sorts sessions.
func SessionKey(id string) (string, error) { return table.EncodeKey(index.SessionPrefix(id)) }

// chosen decides which rows of the word index pass the filters.
type chosen struct {
	f      *engine.Filters
	only   narrow.Rows // rows to consider; nil: all rows
	now    int64
	spans  [3]bounds // for each order from ByTime on, the span of keys that pass
	walked int
}

// bounds are a time span in microseconds. A row whose key is outside [from, before) does not pass. If the key is inside
// that span but outside [coreFrom, coreBefore), the row may pass, and the index line or the document must decide.
type bounds struct{ from, before, coreFrom, coreBefore int64 }

const never = order.Never

func lineBounds(s engine.Span) bounds {
	b := bounds{-never, never, -never, never}
	if !s.Since.IsZero() {
		b.from = s.Since.UnixMicro()
		if b.coreFrom = b.from; s.Since.Nanosecond()%1000 != 0 {
			b.coreFrom++
		}
	}
	if !s.Until.IsZero() {
		b.coreBefore = s.Until.UnixMicro()
		if b.before = b.coreBefore; s.Until.Nanosecond()%1000 != 0 {
			b.before++
		}
	}
	return b
}

func timeBounds(s engine.Span) bounds {
	b := bounds{-never, never, -never, never}
	b.from, b.before = engine.Micros(s)
	if !s.Since.IsZero() { // twice the difference of zones on the other side
		b.coreFrom, _ = engine.Micros(engine.Span{Since: s.Since.Add(2*engine.Zones + time.Microsecond)})
	}
	if !s.Until.IsZero() {
		_, b.coreBefore = engine.Micros(engine.Span{Until: s.Until.Add(-2*engine.Zones - 2*time.Microsecond)})
	}
	return b
}

func (o *Orders) chosen(f *engine.Filters) *chosen {
	return &chosen{f: f, now: o.eng.Env().Clock().UnixMicro(),
		spans: [3]bounds{timeBounds(f.Happened), lineBounds(f.Created), lineBounds(f.Updated)}}
}

// judge reports whether a row passes the filters, so far as the row's own data can decide. If ask is true, the row's
// data cannot decide, and the caller must examine the index line or the document.
func (c *chosen) judge(r *rows.Row) (yes, ask bool, err error) {
	if !c.f.Expired {
		if at, err := r.Expires(); err != nil || at <= c.now {
			return false, false, err
		}
	}
	if c.f.Prefix != "" {
		if id, err := r.Named(); err != nil || !bytes.HasPrefix(id, []byte(c.f.Prefix)) {
			return false, false, err
		}
	}
	if c.f.Session != nil {
		name, err := r.Session()
		if err != nil || len(name) == 0 || string(name) != *c.f.Session {
			return false, false, err
		}
	}
	ask = c.f.By != nil // rows do not record the writer
	for i, span := range [...]*engine.Span{&c.f.Happened, &c.f.Created, &c.f.Updated} {
		if *span == (engine.Span{}) {
			continue
		}
		key, err := r.Of(order.ByTime + order.Order(i))
		switch b := &c.spans[i]; {
		case err != nil:
			return false, false, err
		case i == 0 && key == words.NoTime:
			ask = true
		case key < b.from || key >= b.before:
			return false, false, nil
		case key < b.coreFrom || key >= b.coreBefore:
			ask = true
		}
	}
	return true, ask, nil
}

// Count implements engine.Orders: it returns the number of memories that pass the filters.
func (o *Orders) Count(ctx context.Context, f *engine.Filters) (n int64, ok bool, err error) {
	if f.After != "" {
		return 0, false, nil
	}
	reads := f.Category != nil || f.Key != nil || len(f.Where) > 0
	var asked []string
	refused := false
	ok, err = o.withSnapshot(ctx, func(s *Snapshot) error {
		c := o.chosen(f)
		if reads {
			only, n, err := s.Narrow(f, o.eng.Tune().Few)
			if refused = err == nil && !s.few(only, n); err != nil || refused {
				return err
			}
			c.only = only
		}
		return rows.Among(s.Set, c.only, func(r *rows.Row) (bool, error) {
			yes, ask, err := c.judge(r)
			switch {
			case err != nil || !yes:
			case ask || reads:
				var id []byte
				id, err = r.Named()
				asked = append(asked, string(id))
			default:
				n++
			}
			c.walked++
			return c.walked%1024 != 0 || ctx.Err() == nil, err
		})
	})
	if ok = ok && !refused; err != nil || !ok {
		return n, ok, err
	}
	for _, id := range asked {
		passes, one := engine.Passes(ctx, o.eng, f, id)
		if passes {
			n++
		}
		if err == nil {
			err = one
		}
		if ctx.Err() != nil || errors.Is(err, errs.ErrClosed) {
			break
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return n, true, err
}

// A listing of one session, or of the rows that filters leave, walks the order of all rows if it has more than 1 in
// sessionShare of all memories and more than sessionLeast. Otherwise it reads and sorts only its own rows.
const (
	sessionShare = 64
	sessionLeast = 4096
)

// Page implements engine.Orders: it returns a page of a sorted listing, with at most limit memories. The page may
// include rows for which only the document can decide whether they pass the filters. stop is the place at which
// the page ends, or nil if no more memories follow. ok is false if the view cannot answer.
func (o *Orders) Page(ctx context.Context, f *engine.Filters, s *memstore.Order,
	limit int) (list []memstore.Place, stop *memstore.Place, ok bool, err error) {
	if f.After != "" {
		return nil, nil, false, nil
	}
	asked := map[string]bool{}
	ok, err = o.withSnapshot(ctx, func(snap *Snapshot) error {
		set, c := snap.Set, o.chosen(f)
		visit := func(r *rows.Row) (bool, error) {
			if c.walked++; c.walked%1024 == 0 && ctx.Err() != nil {
				return false, ctx.Err()
			}
			if only, some := c.only[r.At().Part]; some && !only.Has(r.At().Row) {
				return true, nil
			}
			yes, ask, err := c.judge(r)
			if err != nil || !yes {
				return err == nil, err
			}
			p := memstore.Place{Key: r.Key, ID: string(r.ID)}
			if list = append(list, p); len(list) == limit {
				stop = &p
			}
			if ask && !f.Reads() {
				asked[p.ID] = true
			}
			return stop == nil, nil
		}
		docs, _ := set.Docs()
		most := max(sessionLeast, int(docs/sessionShare))
		if f.Session != nil {
			n, err := rows.SizeOf(set, *f.Session)
			if err != nil {
				return err
			}
			if n <= most {
				list, err := rows.InSession(set, *f.Session, order.Order(s.By))
				if err != nil {
					return err
				}
				return pageOf(list, s, visit)
			}
		}
		only, n, err := snap.Narrow(f, o.eng.Tune().Few)
		if err != nil {
			return err
		}
		if c.only = only; only != nil && n <= most {
			list, err := rows.Listed(set, only, order.Order(s.By))
			if err != nil {
				return err
			}
			return pageOf(list, s, visit)
		}
		return c.walk(set, s, visit)
	})
	if err == nil && len(asked) > 0 {
		list = slices.DeleteFunc(list, func(p memstore.Place) bool {
			pass := true
			if asked[p.ID] && err == nil {
				pass, err = engine.Passes(ctx, o.eng, f, p.ID)
			}
			return !pass
		})
	}
	return list, stop, ok, err
}

// pageOf sorts some rows, and calls visit for the rows after the place s.At.
func pageOf(list []rows.Row, s *memstore.Order, visit func(*rows.Row) (bool, error)) error {
	rows.Sort(list, s.Down)
	from := 0
	if s.At != nil {
		from = sort.Search(len(list), func(i int) bool {
			n := memstore.Place{Key: list[i].Key, ID: string(list[i].ID)}.Compare(*s.At)
			return n > 0 && !s.Down || n < 0 && s.Down
		})
	}
	for i := range list[from:] {
		if ok, err := visit(&list[from+i]); err != nil || !ok {
			return err
		}
	}
	return nil
}

// walk calls visit in the order s for the rows after the place s.At whose key is within the time span of that order. In
// the order by time it also calls visit for the rows without a time.
func (c *chosen) walk(set *words.Set, s *memstore.Order, visit func(*rows.Row) (bool, error)) error {
	in := bounds{from: -never, before: never}
	if i := int(s.By - memstore.OrderTimestamp); i < len(c.spans) {
		in = c.spans[i]
	}
	for behind := (*order.Place)(s.At); ; {
		var jump *order.Place
		err := rows.Walk(set, order.Order(s.By), s.Down, behind, func(r *rows.Row) (bool, error) {
			none := s.By == memstore.OrderTimestamp && r.Key == words.NoTime
			switch low, high := r.Key < in.from && !none, r.Key >= in.before; {
			case low && !s.Down:
				jump = &order.Place{Key: in.from}
			case high && s.Down:
				jump = &order.Place{Key: in.before}
			case low && s.By == memstore.OrderTimestamp:
				jump = &order.Place{Key: words.NoTime + 1}
			case low, high:
				return false, nil
			default:
				return visit(r)
			}
			return false, nil
		})
		if err != nil || jump == nil {
			return err
		}
		behind = jump
	}
}
