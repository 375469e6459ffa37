package linear

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// linearWorkers is the number of goroutines of a process; the last one reads through a read-only handle
// of its own.
const linearWorkers = 4

// linearOptions returns options that make everything happen every few histories.
func linearOptions() *varve.Options {
	return storetest.In(&varve.Options{SegmentSize: 64 << 10, CacheBytes: 64 << 10},
		storetest.Environment{System: vfs.System{SpillBytes: 64 << 10, BacklogBytes: 1 << 20, ArchiveBytes: 256 << 10}})
}

// linearProcess is one process of the histories.
type linearProcess struct {
	st, look *varve.Store
	record   *os.File
	life     int
	numbers  atomic.Int64
	say      sync.Mutex
}

func (p *linearProcess) fault(format string, args ...any) {
	p.say.Lock()
	defer p.say.Unlock()
	fmt.Printf("wrong "+strings.ReplaceAll(format, "\n", " ")+"\n", args...)
}

// linearChild does its part of each history that its input names, and records each call and each answer
// before it continues.
func linearChild(ctx context.Context, arg, dir string) error {
	var life int
	var seed uint64
	if _, err := fmt.Sscanf(arg, "%d:%d", &life, &seed); err != nil {
		return err
	}
	st, err := varve.Open(ctx, dir, linearOptions())
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	look, err := varve.Open(ctx, dir, &varve.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open to look: %w", err)
	}
	record, err := os.OpenFile(linearRecord(dir, life), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	p := &linearProcess{st: st, look: look, record: record, life: life}
	work, stop := context.WithCancel(ctx)
	defer stop()
	var keeper sync.WaitGroup
	keeper.Go(func() { p.keep(work, rand.New(rand.NewPCG(seed, 99))) })
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var h, steps, joint int
		if _, err := fmt.Sscan(in.Text(), &h, &steps, &joint); err != nil {
			return err
		}
		if steps == 0 {
			p.last(h)
		} else {
			var wg sync.WaitGroup
			for g := range linearWorkers {
				w := &linearWorker{p: p, g: g, h: h, joint: joint != 0, rng: rand.New(rand.NewPCG(seed+uint64(h), uint64(g)))}
				wg.Go(func() {
					for range steps {
						w.step()
					}
				})
			}
			wg.Wait()
		}
		p.say.Lock()
		fmt.Println("done", h)
		p.say.Unlock()
	}
	stop()
	keeper.Wait()
	return errors.Join(look.Close(), st.Close(), record.Close())
}

func linearRecord(dir string, life int) string {
	return filepath.Join(filepath.Dir(dir), fmt.Sprintf("record-%d", life))
}

// last reads every key once, when all other goroutines are done.
func (p *linearProcess) last(h int) {
	w := &linearWorker{p: p, h: h, rng: rand.New(rand.NewPCG(1, 1))}
	for k := range linearKeys {
		w.get(context.Background(), p.st, k)
	}
	for k := range linearKeys {
		w.past(k)
	}
}

// past records which versions there were, if the log and its archive still have them.
func (w *linearWorker) past(k int) {
	past := &linearPast{Key: k, Whole: true}
	for v, err := range w.p.st.History(context.Background(), w.id(k)) {
		if err != nil {
			past.Whole = past.Whole && errors.Is(err, varve.ErrNotFound) && len(past.Versions) == 0
			continue
		}
		past.Whole = past.Whole && !v.FromFile && (len(past.Versions) > 0 || v.Previous == 0)
		value := int64(0)
		if !v.Deleted {
			m, err := v.Decode()
			if value, _, err = w.seen(k, m, err); err != nil {
				w.p.fault("history of %s: %v", w.id(k), err)
			}
		}
		past.Versions, past.Values = append(past.Versions, v.LSN), append(past.Values, value)
	}
	w.write(&linearEvent{History: w.h, Past: past})
}

// keep flushes, merges, spills and recycles during the histories.
func (p *linearProcess) keep(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		var err error
		switch rng.IntN(4) {
		case 0:
			err = p.st.Admin().Compact(ctx)
		default:
			err = p.st.Flush(ctx)
		}
		if err != nil && ctx.Err() == nil {
			p.fault("flush: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rng.IntN(40)) * time.Millisecond):
		}
	}
}

// linearWorker is one goroutine in one history.
type linearWorker struct {
	p     *linearProcess
	g, h  int
	joint bool // also operations on several keys
	rng   *rand.Rand
	known [linearKeys]struct { // what it was told last
		value   int64
		version uint64
	}
}

func (w *linearWorker) id(k int) string { return fmt.Sprintf("h%d.k%d", w.h, k) }

// value returns a new value, which no other operation writes.
func (w *linearWorker) value() int64 { return int64(w.p.life)<<32 | w.p.numbers.Add(1) }

func (w *linearWorker) write(e *linearEvent) {
	b, err := json.Marshal(e)
	if err == nil {
		_, err = w.p.record.Write(append(b, '\n'))
	}
	if err != nil {
		w.p.fault("record: %v", err)
	}
}

// errWroteNothing is the error of a transaction that only read: such transactions do not take effect at
// one moment.
var errWroteNothing = errors.New("it wrote nothing")

// do records an operation around its call.
func (w *linearWorker) do(op *linearOp, call func(out *linearOut) error) *linearOut {
	e := linearEvent{History: w.h, Number: w.value(), Client: w.p.life*linearWorkers + w.g, Op: op}
	e.At, _ = storetest.Monotonic()
	w.write(&e)
	out := &linearOut{}
	err := call(out)
	e.At, _ = storetest.Monotonic()
	switch {
	case err == nil:
		out.Result = linearOK
	case errors.Is(err, varve.ErrOutcomeUnknown):
		*out = linearOut{Result: linearUnknown}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errWroteNothing):
		*out = linearOut{Result: linearRefused}
	case errors.Is(err, varve.ErrConflict):
		*out = linearOut{Result: linearConflict}
	case errors.Is(err, varve.ErrNotFound) && op.Kind == "delete":
		*out = linearOut{Result: linearNotFound}
	default:
		*out = linearOut{Result: linearUnknown}
		w.p.fault("%s: %v", linearText(op, out), err)
	}
	e.Op, e.Out = nil, out
	w.write(&e)
	return out
}

func (w *linearWorker) step() {
	ctx := context.Background()
	if w.rng.IntN(10) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(w.rng.IntN(2000))*time.Microsecond)
		defer cancel()
	}
	k := w.rng.IntN(linearKeys)
	n := w.rng.IntN(100)
	if !w.joint {
		n = n * 80 / 100
	}
	switch {
	case n < 28:
		from := w.p.st
		if w.g == linearWorkers-1 {
			from = w.p.look
		}
		w.get(ctx, from, k)
	case n < 46:
		w.put(ctx, linearWrite{Key: k})
	case n < 54:
		w.put(ctx, linearWrite{Key: k, Absent: true})
	case n < 70:
		w.put(ctx, linearWrite{Key: k, If: w.known[k].value, Absent: w.known[k].value == 0})
	case n < 77:
		w.remove(ctx, linearWrite{Key: k})
	case n < 80:
		w.remove(ctx, linearWrite{Key: k, If: w.known[k].value})
	case n < 88:
		w.batch(ctx)
	default:
		w.transact(ctx)
	}
}

// seen converts a memory to a value.
func (w *linearWorker) seen(k int, m varve.Memory, err error) (int64, uint64, error) {
	if errors.Is(err, varve.ErrNotFound) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	state := storetest.StateOf(m, nil)
	v, perr := strconv.ParseInt(state, 10, 64)
	if perr != nil {
		w.p.fault("%s is %q", w.id(k), state)
	}
	return v, m.Version, nil
}

func (w *linearWorker) get(ctx context.Context, st *varve.Store, k int) {
	w.do(&linearOp{Kind: "get", Reads: []int{k}}, func(out *linearOut) error {
		m, err := st.Get(ctx, w.id(k))
		value, version, err := w.seen(k, m, err)
		if err != nil {
			return err
		}
		w.known[k].value, w.known[k].version = value, version
		out.Saw, out.Versions = []int64{value}, []uint64{version}
		return nil
	})
}

func (w *linearWorker) conds(wr linearWrite) (conds []varve.Cond) {
	if wr.Absent {
		conds = append(conds, varve.IfAbsent())
	}
	if wr.If != 0 {
		conds = append(conds, varve.IfVersion(w.known[wr.Key].version))
	}
	return conds
}

// options converts conditions to those of a put.
func options(conds []varve.Cond) (list []varve.PutOption) {
	for _, c := range conds {
		list = append(list, c)
	}
	return list
}

func (w *linearWorker) memory(k int, value int64) varve.Memory {
	size := w.rng.IntN(300)
	if w.rng.IntN(20) == 0 {
		size = w.rng.IntN(8000)
	}
	return varve.Memory{ID: w.id(k), Content: storetest.Content(strconv.FormatInt(value, 10), size)}
}

func (w *linearWorker) put(ctx context.Context, wr linearWrite) {
	wr.Value = w.value()
	m, conds := w.memory(wr.Key, wr.Value), w.conds(wr)
	async := w.rng.IntN(5) == 0
	w.do(&linearOp{Kind: "put", Writes: []linearWrite{wr}}, func(out *linearOut) error {
		var got varve.Memory
		var err error
		if async {
			got, err = w.p.st.PutAsync(m, options(conds)...).Wait(ctx)
		} else {
			got, err = w.p.st.Put(ctx, m, options(conds)...)
		}
		if err == nil {
			out.Version = got.Version
			w.known[wr.Key].value, w.known[wr.Key].version = wr.Value, got.Version
		}
		return err
	})
}

func (w *linearWorker) remove(ctx context.Context, wr linearWrite) {
	conds := w.conds(wr)
	w.do(&linearOp{Kind: "delete", Writes: []linearWrite{wr}}, func(*linearOut) error {
		return w.p.st.Delete(ctx, w.id(wr.Key), conds...)
	})
}

// batch writes two or three keys at once, sometimes with a condition.
func (w *linearWorker) batch(ctx context.Context) {
	op := &linearOp{Kind: "batch"}
	b := new(varve.Batch)
	for _, k := range w.rng.Perm(linearKeys)[:2+w.rng.IntN(2)] {
		wr := linearWrite{Key: k}
		switch w.rng.IntN(6) {
		case 0:
			wr.If = w.known[k].value
		case 1:
			wr.Absent = true
		}
		conds := w.conds(wr)
		if w.rng.IntN(5) == 0 {
			b.Delete(w.id(k), conds...)
		} else {
			wr.Value = w.value()
			b.Put(w.memory(k, wr.Value), options(conds)...)
		}
		op.Writes = append(op.Writes, wr)
	}
	w.do(op, func(*linearOut) error { return w.p.st.Apply(ctx, b) })
}

// transact reads two or three keys and writes one or two.
func (w *linearWorker) transact(ctx context.Context) {
	keys := w.rng.Perm(linearKeys)
	op := &linearOp{Kind: "tx", Reads: keys[:2+w.rng.IntN(2)]}
	memories := map[int]varve.Memory{}
	for _, k := range w.rng.Perm(linearKeys)[:1+w.rng.IntN(2)] {
		wr := linearWrite{Key: k}
		if w.rng.IntN(5) > 0 {
			wr.Value = w.value()
			memories[k] = w.memory(k, wr.Value)
		}
		op.Writes = append(op.Writes, wr)
	}
	w.do(op, func(out *linearOut) error {
		wrote := false
		err := w.p.st.Transact(ctx, func(tx *varve.Tx) error {
			out.Saw, out.Versions, wrote = nil, nil, false // it may run again
			for _, k := range op.Reads {
				m, err := tx.Get(w.id(k))
				value, version, err := w.seen(k, m, err)
				if err != nil {
					return err
				}
				out.Saw, out.Versions = append(out.Saw, value), append(out.Versions, version)
			}
			for _, wr := range op.Writes {
				var err error
				if wr.Value != 0 {
					_, err = tx.Put(memories[wr.Key])
				} else {
					err = tx.Delete(w.id(wr.Key))
				}
				if errors.Is(err, varve.ErrNotFound) {
					continue // a deletion of what is not there
				}
				if err != nil {
					return err
				}
				wrote = true
			}
			return nil
		})
		if err == nil && !wrote {
			err = errWroteNothing
		}
		return err
	})
}
