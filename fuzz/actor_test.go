package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	varve "github.com/varve-db/varve"
)

// actor works on a store and records the history.
type actor struct {
	h    *history
	st   *varve.Store
	name string
	now  func() time.Time
	rng  *rand.Rand
	// faulty: errors other than refusals are to be expected.
	faulty    bool
	errs      []error  // that faults led to
	more      []string // ids, beside those that all use
	lasting   bool     // much of what expires does so in a later boot
	switching bool     // the language of the words changes
	many      bool     // now and then a batch that one barrier makes durable
}

var ctx = context.Background()

// content returns the content that a write puts: its token, and filling that neither repeats nor
// compresses much.
func content(token string, size int) string {
	n, _ := strconv.Atoi(token[1:])
	at := n * 7919 % (len(filling) - size)
	return token + ":" + filling[at:at+max(0, size-len(token)-1)]
}

var filling = func() string {
	b, rng := make([]byte, 1<<16), rand.New(rand.NewPCG(7, 7))
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}()

const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"

func tokenOf(content string) string {
	token, _, _ := strings.Cut(content, ":")
	return token
}

func (w *write) memory() varve.Memory {
	m := varve.Memory{ID: w.id, Content: content(w.token, w.size), ExpiresAt: w.expires, QuickRecalScore: 0.5}
	if w.session != "" {
		m.Metadata = map[string]any{"session_id": w.session}
	}
	if w.size%3 == 0 {
		m.Embedding = []float32{1, 0.5, float32(w.size)}
	}
	if w.labels {
		w.label(&m)
	}
	return m
}

var refusal = []error{varve.ErrConflict, varve.ErrNotFound, varve.ErrTooLarge, varve.ErrBatchTooLarge, varve.ErrInvalid,
	varve.ErrClosed, varve.ErrReadOnly}

func isRefusal(err error) bool {
	if errors.Is(err, varve.ErrOutcomeUnknown) {
		return false
	}
	for _, r := range refusal {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// answered records how writes ended.
func (a *actor) answered(what string, err error, ws ...*write) bool {
	switch {
	case err == nil:
		a.h.answer(acked, ws...)
		return true
	case isRefusal(err):
		a.h.answer(refused, ws...)
	default:
		a.h.answer(pending, ws...)
		for _, w := range ws {
			if a.h.tolerates(err, w.id) {
				return false
			}
		}
		a.failed(what, err)
	}
	return false
}

func (a *actor) failed(what string, err error) {
	if !a.faulty {
		a.h.bad("%s: %s: %v", a.name, what, err)
	}
	a.errs = append(a.errs, fmt.Errorf("%s: %w", what, err))
}

// refusedBy records what a refusal implies about a memory.
func (a *actor) refusedBy(what, id string, start int, err error) {
	o := observation{id: id, start: start, at: a.now(), what: a.name + " " + what}
	switch {
	case errors.Is(err, varve.ErrNotFound):
		a.h.observe(o)
	case errors.Is(err, varve.ErrConflict):
		if c, ok := errors.AsType[*varve.ConflictError](err); ok {
			o.version, o.only = c.Found, c.Found != 0
			a.h.observe(o)
			return
		}
		a.h.bad("%s: %s: a conflict that does not say with what: %v", a.name, what, err)
	}
}

func (a *actor) put(id string, size int, session string, ttl time.Duration,
	options ...varve.PutOption) (varve.Memory, error) {
	w := &write{id: id, size: size, session: session}
	if ttl > 0 {
		w.expires = a.now().Add(ttl).UTC().Truncate(time.Microsecond)
	}
	a.h.begin(w)
	m, err := a.st.Put(ctx, w.memory(), options...)
	if err == nil {
		w.version = m.Version
	}
	if !a.answered("put", err, w) {
		a.refusedBy("put", id, w.start, err)
	}
	return m, err
}

// putIf replaces a version that was read before.
func (a *actor) putIf(id string, size int, was varve.Memory) error {
	w := a.h.begin(&write{actor: a.name, id: id, size: size, base: was.Version, based: true})
	m, err := a.st.Put(ctx, w.memory(), varve.IfVersion(was.Version))
	if err == nil {
		w.version = m.Version
		a.h.observe(observation{id: id, token: tokenOf(was.Content), version: was.Version, start: w.start, at: a.now(),
			what: a.name + " putIf"})
	}
	if !a.answered("put if version", err, w) {
		a.refusedBy("put if version", id, w.start, err)
	}
	return err
}

func (a *actor) putAbsent(id string, size int) error {
	w := a.h.begin(&write{actor: a.name, id: id, size: size})
	m, err := a.st.Put(ctx, w.memory(), varve.IfAbsent())
	if err == nil {
		w.version = m.Version
		a.h.observe(observation{id: id, start: w.start, at: a.now(), what: a.name + " putAbsent"})
	}
	if !a.answered("put if absent", err, w) {
		a.refusedBy("put if absent", id, w.start, err)
	}
	return err
}

func (a *actor) delete(id string) error {
	w := a.h.begin(&write{actor: a.name, id: id, del: true})
	err := a.st.Delete(ctx, id)
	if !a.answered("delete", err, w) {
		a.refusedBy("delete", id, w.start, err)
	}
	return err
}

type change struct {
	id      string
	del     bool
	size    int
	session string
}

func (a *actor) batch(changes ...change) error {
	a.h.batches++
	b := new(varve.Batch)
	var ws []*write
	last := map[string]int{}
	for i, c := range changes {
		last[c.id] = i
	}
	for i, c := range changes {
		if last[c.id] != i {
			continue // of several operations on one memory the last one is effective
		}
		w := a.h.begin(&write{actor: a.name, id: c.id, del: c.del, size: c.size, session: c.session, batch: a.h.batches})
		ws = append(ws, w)
		if c.del {
			b.Delete(c.id)
		} else {
			b.Put(w.memory())
		}
	}
	err := a.st.Apply(ctx, b)
	a.answered("batch", err, ws...)
	return err
}

func (a *actor) update(id string, size int) error {
	var w *write
	m, err := a.st.Update(ctx, id, func(m *varve.Memory) error {
		if w != nil {
			a.h.answer(refused, w) // that run was not committed
		}
		w = a.h.begin(&write{actor: a.name, id: id, size: size, session: m.Session(), expires: m.ExpiresAt,
			base: m.Version, based: true})
		m.Content = content(w.token, size)
		return nil
	})
	return a.transacted("update", id, m.Version, err, w)
}

func (a *actor) transacted(what, id string, version uint64, err error, w *write) error {
	if w == nil {
		if err != nil && !isRefusal(err) && !a.h.tolerates(err, id) {
			a.failed(what, err)
		}
		return err
	}
	if err == nil {
		w.version = version
	}
	a.answered(what, err, w)
	return err
}

// move replaces one memory by another: it deletes one and writes the other in one transaction.
func (a *actor) move(from, to string, size int) error {
	var ws []*write
	err := a.st.Transact(ctx, func(tx *varve.Tx) error {
		a.h.answer(refused, ws...)
		ws = nil
		if _, err := tx.Get(from); err != nil {
			return err
		}
		a.h.batches++
		d := a.h.begin(&write{actor: a.name, id: from, del: true, batch: a.h.batches})
		p := a.h.begin(&write{actor: a.name, id: to, size: size, batch: a.h.batches})
		ws = []*write{d, p}
		if err := tx.Delete(from); err != nil {
			return err
		}
		_, err := tx.Put(p.memory())
		return err
	})
	if len(ws) > 0 {
		a.answered("transact", err, ws...)
	} else if err != nil && !isRefusal(err) && !a.h.tolerates(err, from) {
		a.failed("transact", err)
	}
	return err
}

// get reads a memory and compares it with all that is known of it.
func (a *actor) get(id string) (varve.Memory, error) {
	start := a.h.now()
	m, err := a.st.Get(ctx, id)
	return m, a.got("get", id, start, m, err)
}

func (a *actor) got(what, id string, start int, m varve.Memory, err error) error {
	o := observation{id: id, start: start, at: a.now(), what: a.name + " " + what}
	switch {
	case errors.Is(err, varve.ErrNotFound):
		a.h.observe(o)
		return err
	case a.h.tolerates(err, id):
		return err
	case err != nil:
		a.failed(what, err)
		return err
	}
	o.token, o.version = tokenOf(m.Content), m.Version
	a.h.observe(o)
	w := a.h.tokens[o.token]
	if w == nil {
		return nil // the verdict says so
	}
	if m.ID != id || w.id != id || m.Content != content(w.token, w.size) || m.Session() != w.session ||
		!m.ExpiresAt.Equal(w.expires) {
		a.h.bad("%s: %.20q is not what %v put: content of %d bytes, session %q, expires %v", a.name, id, w, len(m.Content),
			m.Session(), m.ExpiresAt)
	}
	return nil
}

// list reads all that is listed. Concurrent writes may or may not be seen.
func (a *actor) list(filters ...varve.Filter) []varve.Memory {
	var all []varve.Memory
	start := a.h.now()
	for m, err := range a.st.Memories(ctx, filters...) {
		if a.h.tolerates(err, "") {
			continue
		}
		if err != nil {
			a.failed("list", err)
			continue
		}
		if a.got("list", m.ID, start, m, nil) == nil {
			all = append(all, m)
		}
	}
	return all
}

func (a *actor) do(what string, err error) error {
	if err != nil {
		a.failed(what, err)
	}
	return err
}

func (a *actor) flush() error { return a.do("flush", a.st.Admin().Compact(ctx)) }

func (a *actor) close() error { return a.do("close", a.st.Close()) }

// ids are the ids that random operations use.
var ids = []string{"a", "b", "c", "A", "x:y", "x-y", "ünï/cødé", "k07", "k08", strings.Repeat("long", 40)}

// step does one random operation.
func (a *actor) step() {
	id := ids[a.rng.IntN(len(ids))]
	if len(a.more) > 0 && a.rng.IntN(8) == 0 {
		id = a.more[a.rng.IntN(len(a.more))]
	}
	size := []int{8, 40, 300, 1200, 5000, 20000}[min(a.rng.IntN(6), a.rng.IntN(7))]
	session := []string{"", "s1", "s2"}[a.rng.IntN(3)]
	if a.many && a.rng.IntN(40) == 0 {
		var list []change
		for i := range 70 {
			list = append(list, change{id: fmt.Sprint("many", i), size: 20})
		}
		a.batch(list...)
		a.flush()
	}
	if a.lasting && a.rng.IntN(4) == 0 {
		a.put(fmt.Sprint("lasting", a.rng.IntN(30)), 30, "s2", time.Duration(10+a.rng.IntN(180))*time.Minute)
	}
	kinds := 24
	if a.h.labelled {
		kinds = 28
	}
	switch a.rng.IntN(kinds) {
	case 0, 1, 2, 3, 4:
		var ttl time.Duration
		if a.rng.IntN(6) == 0 {
			ttl = time.Duration(1+a.rng.IntN(50)) * 100 * time.Millisecond
		}
		a.put(id, size, session, ttl)
	case 5, 6:
		a.delete(id)
	case 7, 8:
		a.batch(a.changes()...)
	case 9:
		a.putAbsent(id, size)
	case 10, 11:
		if m, err := a.get(id); err == nil {
			a.putIf(id, size, m)
		}
	case 12:
		a.put(id, size, session, 0, varve.IfVersion(uint64(8*(1+a.rng.IntN(1<<17))))) // stale, or never was
	case 13, 14:
		a.update(id, size)
	case 15:
		a.move(id, ids[a.rng.IntN(len(ids))]+"!", size)
	case 16:
		a.flush()
	case 17:
		a.list(inOrder(a.orderKey()))
		a.list()
	case 18:
		if _, err := a.st.Count(ctx); err != nil && !a.h.tolerates(err, "") {
			a.failed("count", err)
		}
		a.list(varve.InSession("s1"))
	case 24:
		a.sieved()
	case 25, 26:
		a.searched()
	case 27:
		if a.switching && a.rng.IntN(5) == 0 {
			a.switched([]string{"en", "de", "none"}[a.rng.IntN(3)])
		}
		a.sieved()
	default:
		a.get(id)
	}
}

func (a *actor) changes() []change {
	var list []change
	for range 2 + a.rng.IntN(19) {
		list = append(list, change{
			id: ids[a.rng.IntN(len(ids))], del: a.rng.IntN(4) == 0,
			size: []int{8, 100, 900, 1500}[a.rng.IntN(4)], session: []string{"", "s1"}[a.rng.IntN(2)],
		})
	}
	return list
}
