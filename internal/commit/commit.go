package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Op is one operation of a commit, such as putting or deleting a memory.
type Op struct {
	kind      *engine.Kind // kind of the document; set by commit
	Group     bool         // the operation is on an assembly
	ID        string
	Memory    *memstore.Memory // the memory to put; nil together with Assembly: a deletion
	Assembly  *assembly.Assembly
	Work      *wal.Entry // the working-memory entry to write; Memory and Assembly are nil then, and ID is ""
	WorkAt    wal.LSN    // the version that the working-memory scope must still have
	Conds     Conditions
	MustExist bool                         // deleting a missing id is ErrNotFound instead of a no-op
	When      func(line *index.Entry) bool // for a deletion: reports whether line's document may be deleted; nil: yes
	evicted   bool                         // a deletion that the store adds to make room for the other operations
	// reason why the store makes the change, a cause of package wal; 0: a caller requested it
	Cause        uint8
	Written      bool // set by Commit: this operation changed the store
	EmbeddedHere bool // this process's embedder made the embedding
	// name that the store would record for the model that made the embedding
	EmbeddedBy     string
	NeedsEmbedding bool // the memory has no embedding yet, and the store will make one
	Derived        bool // only the embedding changes: updated_at stays the same
	// if set, the operation is based on a version that may not be durable yet
	follows *follow
}

func (o *Op) deletes() bool { return o.Memory == nil && o.Assembly == nil }

// cause returns the cause, as package wal defines it, that is recorded in the operation's log entry.
func (o *Op) cause() uint8 {
	switch {
	case o.evicted:
		return wal.CauseEvicted
	case o.Derived:
		return wal.CauseUpkeep
	}
	return o.Cause
}

// Reads are the versions that a transaction has read, by log key.
type Reads map[string]wal.LSN

// Commit prepares each operation from the newest version of its document, and appends all operations as one batch
// on the condition that these versions are still the newest. If one of them is not, Commit prepares the batch
// again. It evaluates the caller's conditions each time, and returns an error if one fails. It sets the results in
// ops.
//
// seen has the versions that a transaction has read. listed is the log position as of which the transaction has
// listed memories, or 0 if it has not listed any.
func (cm *Committer) Commit(ctx context.Context, ops []Op, seen Reads, listed wal.LSN) error {
	return cm.commit(ctx, ops, seen, listed, cm.engine.Commits())
}

// Upkeep does what Commit does, for changes that the store makes by itself, such as deleting expired memories.
// It does not count them as commits that a caller requested (Engine.Commits).
func (cm *Committer) Upkeep(ctx context.Context, ops []Op, seen Reads, listed wal.LSN) error {
	return cm.commit(ctx, ops, seen, listed, new(atomic.Int64))
}

// commit does what Commit does, and increments commits if the commit has written entries.
func (cm *Committer) commit(ctx context.Context, ops []Op, seen Reads, listed wal.LSN, commits *atomic.Int64) error {
	puts := false
	for i := range ops {
		if ops[i].kind = cm.engine.Kinds().Memories; ops[i].Group {
			ops[i].kind = cm.engine.Kinds().Assemblies
		}
		puts = puts || !ops[i].deletes()
	}
	if puts { // deletions free space, so they are not slowed
		if err := cm.pace.Pressure(ctx, func() int64 { return bytesOf(ops) }); err != nil {
			return err
		}
	}
	turn := cm.turn()
	defer turn.leave()
	if len(ops) == 1 && len(seen) == 0 {
		if err := turn.pass(ctx, ops[0].kind.Key(ops[0].ID)); err != nil {
			return err
		}
	}
	var waited time.Duration // time spent waiting for other commits that make room
	for {
		w := cm.work()
		all, err := cm.attempt(ctx, w, ops, seen, listed, puts)
		if busy := (*busyError)(nil); errors.As(err, &busy) {
			if waited += busyPause; waited > cm.engine.Env().LockWait {
				return busy.refusal
			}
			if err := cm.engine.Env().Sleep(ctx, busyPause); err != nil {
				return err
			}
			continue
		}
		var conflict *wal.ConflictError
		if errors.As(err, &conflict) {
			if cm.tx(conflict, seen, listed) {
				return err
			}
			if followed(ops) != nil { // the conflict may be with an entry that this process cannot see yet
				if err := cm.engine.Log().Settle(ctx, cm.engine.Log().Written()-1); err != nil {
					return err
				}
				return conflict
			}
			if err := turn.take(ctx, conflict.Key); err != nil {
				return err
			}
			cm.engine.Env().Logger.Debug("preparing again: another writer changed the document", "key", conflict.Key, "expected",
				conflict.LSN, "found", conflict.Found)
			continue
		}
		if err != nil {
			return cm.engine.Log().Folder().Explain(err)
		}
		if all == nil {
			return nil
		}
		if len(w.batch.Entries) > 0 {
			commits.Add(1)
		}
		cm.wrote(all, w)
		cm.lift(ctx, ops)
		cm.recycle(w)
		cm.pace.BeatInline()
		cm.pace.RoundInline(ctx)
		return nil
	}
}

// busyPause is the pause before the next attempt of a commit while other commits evict memories to make room.
const busyPause = time.Millisecond

// attempt prepares and appends the operations once. It returns the operations followed by the deletions that the
// store's limits require; nil if there was nothing to do. puts reports whether the operations include a put.
func (cm *Committer) attempt(ctx context.Context, w *work, ops []Op, seen Reads, listed wal.LSN,
	puts bool) ([]Op, error) {
	defer func() { cm.counts.Evictions.Leave(w.turn) }()
	all, err := cm.prepare(ctx, w, ops, seen, listed)
	if err != nil {
		cm.counts.Evictions.Release(w.taken, false)
		return nil, err
	}
	b := &w.batch
	if len(b.Entries) == 0 && len(b.Preconditions) == 0 {
		return nil, nil
	}
	b.Frees = !puts && w.kept == 0
	if f := followed(ops); f != nil {
		b.Written = f.left
	}
	if cm.restsOnAny(w, ops, seen, listed) {
		b.OnTop = func(newest *wal.Entry) bool { return cm.onTop(w, &ops[0], newest) }
	}
	w.swaps = cm.engine.State().Swaps()
	_, err = cm.engine.Append(ctx, b)
	cm.counts.Evictions.Release(w.taken, err == nil)
	if w.kept > 0 && !puts {
		err = unkept(err)
	}
	return all, w.along.explain(err)
}

// tx reports whether a conflict concerns something that the transaction has read or listed.
func (cm *Committer) tx(c *wal.ConflictError, seen Reads, listed wal.LSN) bool {
	if c.Key == "" {
		return listed != 0 // otherwise it is about the store's dimension
	}
	_, ok := seen[c.Key]
	return ok
}

// wrote sets the versions of the written documents in ops, and wakes the flusher.
func (cm *Committer) wrote(ops []Op, w *work) {
	b, n := &w.batch, w.kept
	gone, first := 0, ""
	for i := range ops {
		if !ops[i].Written {
			continue
		}
		if ops[i].evicted {
			if gone++; gone == 1 {
				first = ops[i].ID
			}
		}
		if m := ops[i].Memory; m != nil {
			m.Version, m.By = b.Entries[n].LSN, b.Entries[n].Writer
			if doc := w.prepared[i].doc; doc != nil {
				engine.Written(cm.engine, m, doc, &b.Entries[n], w.swaps)
			}
		}
		if a := ops[i].Assembly; a != nil {
			*a = *w.prepared[i].assembly
			a.Version, a.By = b.Entries[n].LSN, b.Entries[n].Writer
		}
		n++
	}
	cm.pace.Wake(len(b.Entries))
	if gone > 0 {
		cm.engine.Env().Event(env.Event{Kind: env.EventEvicted, Count: gone, ID: first,
			Writer: cm.engine.Writer(b.Writer, b.Entries[0].LSN)})
	}
}

// prepare builds the batch of entries for the operations in w. If several operations are on one id, only the
// last is written. prepare returns the operations followed by the deletions that the store's limits require.
func (cm *Committer) prepare(ctx context.Context, w *work, ops []Op, seen Reads, listed wal.LSN) ([]Op, error) {
	b := &w.batch
	for _, key := range sortedKeys(seen) {
		b.Preconditions = append(b.Preconditions, wal.Precondition{Key: key, LSN: seen[key]})
	}
	if listed != 0 {
		b.Preconditions = append(b.Preconditions, wal.Precondition{LSN: listed})
	}
	type name struct {
		kind *engine.Kind
		id   string
	}
	var last map[name]int
	if len(ops) > 1 {
		last = make(map[name]int, len(ops))
		for i := range ops {
			if ops[i].ID != "" {
				last[name{ops[i].kind, ops[i].ID}] = i
			}
		}
	}
	prepared := w.room(len(ops))
	for i := range ops {
		ops[i].Written = false
		if j, ok := last[name{ops[i].kind, ops[i].ID}]; ok && j != i {
			late, of := j, &ops[j].Conds
			if of.inherited {
				late, of = i, &ops[i].Conds
			}
			if of.Any() {
				return nil, &errs.BatchError{Index: late, Key: ops[late].ID,
					Err: fmt.Errorf("%w: the operation has a condition, but an earlier operation of the batch names the same id",
						errs.ErrInvalid)}
			}
			ops[j].Conds.inherit(&ops[i].Conds)
			continue
		}
		prepared[i].wanted = true
	}
	model := cm.vectors.Model()
	decided, err := cm.fitVectors(ctx, ops, &model)
	if err != nil {
		return nil, err
	}
	if hasVectors(ops) {
		b.Preconditions = append(b.Preconditions, wal.Precondition{Key: state.ModelKey, LSN: model.LSN})
	}
	if decided != (wal.Precondition{}) {
		b.Preconditions = append(b.Preconditions, decided)
	}
	cm.prepareAll(ctx, w, ops)
	if ops, err = cm.keepLimits(ctx, w, ops, seen); err != nil {
		return nil, err
	}
	prepared = w.prepared
	if err := cm.prepareAlong(ctx, w, ops); err != nil {
		return nil, err
	}
	for i := range prepared {
		p := &prepared[i]
		switch {
		case p.err != nil && len(ops) > 1:
			return nil, &errs.BatchError{Index: i, Key: ops[i].ID, Err: p.err}
		case p.err != nil:
			if ops[i].ID == "" && ops[i].deletes() {
				return nil, fmt.Errorf("%s with an empty id: %w", ops[i].kind.Noun, p.err)
			}
			if ops[i].ID == "" {
				return nil, fmt.Errorf("new %s: %w", ops[i].kind.Noun, p.err)
			}
			return nil, fmt.Errorf("%s %s: %w", ops[i].kind.Noun, human.Quote(ops[i].ID), p.err)
		case !p.wanted:
			continue
		}
		b.Preconditions = append(b.Preconditions, p.precondition)
		if ops[i].Written {
			b.Entries = append(b.Entries, p.entry)
		}
	}
	b.Preconditions = append(b.Preconditions, w.along.preconditions...)
	b.Entries = append(b.Entries, w.along.entries...)
	if !slices.ContainsFunc(ops, func(o Op) bool { return o.Conds.Unkept }) {
		kept, err := cm.keep(ctx, nil, b.Entries)
		if err != nil {
			return nil, err
		}
		if w.kept = len(kept); w.kept > 0 {
			b.Entries = append(kept, b.Entries...)
		}
	}
	return ops, nil
}

func sortedKeys(seen Reads) []string {
	if len(seen) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(seen))
}

// prepared is the result of preparing one operation: its log entry, its precondition, and related data.
type prepared struct {
	wanted       bool
	precondition wal.Precondition
	entry        wal.Entry
	assembly     *assembly.Assembly // the assembly that will be written
	doc          []byte             // document of a memory, for the cache; nil if it is not to be cached
	effect       counts.Effect
	err          error
}

// prepareMany is the least number of operations for each goroutine that prepares a commit: with fewer than twice this
// number, one goroutine prepares all operations. A commit with prepareMany or more operations, such as an import, does
// not put its documents into the cache, because they would displace the documents that are being read.
const prepareMany = 64

func (cm *Committer) prepareAll(ctx context.Context, w *work, ops []Op) {
	w.arena(0).docs = len(ops) < prepareMany && cm.engine.Cache() != nil
	n := min(runtime.GOMAXPROCS(0), len(ops)/prepareMany)
	if n < 2 || cm.engine.Env().System.Inline {
		cm.prepareSome(ctx, ops, w.prepared, w.arena(0), func(int) time.Time { return cm.engine.Env().Clock() })
		return
	}
	// The memories of a session are ordered by time. The clock could give the second half of a batch times between
	// those of the first half.
	began := cm.engine.Env().Clock()
	var wg sync.WaitGroup
	for k := range n {
		from, to, values := k*len(ops)/n, (k+1)*len(ops)/n, w.arena(k)
		wg.Go(func() {
			cm.prepareSome(ctx, ops[from:to], w.prepared[from:to], values,
				func(i int) time.Time { return began.Add(time.Duration(from+i) * time.Microsecond) })
		})
	}
	wg.Wait()
}

// prepareSome prepares those operations in ops that out marks as wanted and that change memories. It stores the
// result of operation i in out[i]. timeOf returns the time of operation i.
func (cm *Committer) prepareSome(ctx context.Context, ops []Op, out []prepared, values *arena,
	timeOf func(i int) time.Time) {
	for i := range out {
		if out[i].wanted && ops[i].kind == cm.engine.Kinds().Memories {
			out[i].err = cm.prepareOne(ctx, &ops[i], &out[i], values, timeOf(i))
		}
	}
}

// before returns the version that the operation o replaces. The version has its content if the new version keeps JSON
// members of that content. If the content cannot be read, before returns the version without it: damage must not
// prevent the write.
func (cm *Committer) before(ctx context.Context, o *Op) (engine.Version, error) {
	if o.follows != nil {
		return o.follows.base, o.follows.err
	}
	if o.Memory != nil && !o.Conds.Any() && cm.unheard(o.kind, o.ID) {
		return engine.Version{}, errs.ErrNotFound
	}
	if o.Memory != nil && !o.Memory.Decoded() {
		v, err := cm.engine.Load(ctx, o.kind, o.ID)
		if err == nil || errors.Is(err, errs.ErrNotFound) && cm.engine.Log().Damage() == nil {
			return v, err
		}
	}
	return cm.engine.Find(ctx, o.kind, o.ID, false)
}

// unheard reports whether this process knows no version of a document. It does not first read the entries that other
// processes have made durable. For an unconditional put, this is enough: the log evaluates the precondition of the put
// against all entries, and if the log refuses the put, those entries have been read by then. It is not enough in a
// store with limits, because a limit refuses a new document before the log sees the put: there unheard returns false.
//
// Measured with 4 processes of 16 goroutines that put: reading the new entries before each put blocked the log's mutex
// for the goroutine that was writing.
func (cm *Committer) unheard(k *engine.Kind, id string) bool {
	if cm.engine.Log().Damage() != nil || counts.LimitsOf(cm.engine.Settings().Now()) != nil {
		return false
	}
	cm.engine.RemapDue()
	_, err := cm.engine.State().Find(k.Letter, id)
	return errors.Is(err, errs.ErrNotFound)
}

func (cm *Committer) prepareOne(ctx context.Context, o *Op, p *prepared, values *arena, now time.Time) error {
	if o.Work != nil {
		p.precondition = wal.Precondition{Key: o.Work.Key, LSN: o.WorkAt}
		p.entry, o.Written = *o.Work, true
		return nil
	}
	hint := uint64(0)
	old, err := engine.Version{}, error(errs.ErrNotFound)
	if o.ID != "" {
		if hint = cm.engine.State().Hint(); o.follows != nil {
			hint = o.follows.hint
		}
		old, err = cm.before(ctx, o)
	}
	if err != nil && !errors.Is(err, errs.ErrNotFound) {
		return err
	}
	found := err == nil
	if found {
		p.effect.Was, p.effect.WasSession = counts.Sum{N: 1, Bytes: old.Line.Size}, old.Line.SessionID
	}
	visible := old.LSN
	if found && old.Expired(now) {
		visible = 0
		if o.Memory != nil && o.Conds.absence() {
			if err := ConfirmExpired(cm.clock, o.ID, old.LSN, old.Line.ExpiresAt); err != nil {
				return err
			}
		}
	}
	if visible != 0 {
		if err := Admits(o.Conds.Session, old.Line.SessionID); err != nil {
			return err
		}
	}
	if err := o.Conds.Holds(o.ID, visible, old.Line.UpdatedAt); err != nil {
		return err
	}
	if o.Memory == nil {
		if visible == 0 && o.MustExist {
			return errs.ErrNotFound
		}
		p.precondition = wal.Precondition{Key: engine.MemoryKey(o.ID), LSN: old.LSN, Hint: hint}
		if !found || o.When != nil && !o.When(&old.Line) {
			return nil
		}
		value, inflated := cm.engine.Codec().Encode(nil, &record.Record{Previous: old.LSN})
		p.entry = wal.Entry{Key: p.precondition.Key, Kind: record.KindDelete, Delete: true, Value: value, Inflated: inflated,
			Cause: o.cause()}
		o.Written = true
		return nil
	}
	return cm.preparePut(o, p, values, &old, hint, now)
}

// preparePut prepares the operation o, a put that replaces the version old, and stores the result in p. The LSN of old
// is 0 if there is no version. hint is the Hint of the put's precondition, 0 for none. now is the time of the put. The
// encoded bytes are stored in values.
func (cm *Committer) preparePut(o *Op, p *prepared, values *arena, old *engine.Version, hint uint64,
	now time.Time) error {
	found, previous := old.LSN != 0, old.LSN
	if !found {
		previous = cm.engine.State().Deletion(kind.Memories.Letter, o.ID)
	}
	var prev *memstore.Previous
	if found {
		prev = &memstore.Previous{CreatedAt: old.Line.CreatedAt, Version: old.LSN, VectorID: old.Line.VectorNumber()}
		if old.Expired(now) {
			prev.CreatedAt = time.Time{} // the old memory has expired: this is a new one
		} else if !o.Memory.Decoded() {
			prev.Document = old.Doc
		}
	}
	m := o.Memory
	if err := Join(o.Conds.Session, m); err != nil {
		return err
	}
	if err := cm.purged(o, cm.engine.Kinds().Memories, m.ID, m.Content); err != nil {
		return err
	}
	if values.scratch == nil {
		values.scratch = make([]byte, 0, 8<<10)
	}
	number := o.Conds.Number
	if prev != nil && prev.VectorID == number {
		number = 0 // the vector with that number may be a different one
	}
	doc, line, err := memstore.Prepare(m, prev, now,
		memstore.PrepareOptions{Limits: cm.engine.Settings().Now().MemoryLimits(), Rand: cm.engine.Env().System.Rand,
			Buffer: values.scratch, VectorID: number, KeepUpdated: o.Derived})
	if err != nil {
		return err
	}
	value, inflated := cm.engine.Codec().Encode(values.room(64+len(line)+len(doc)+4*len(m.Embedding)),
		&record.Record{Previous: previous, Created: !found, Line: line, Vector: m.Embedding, Doc: doc})
	values.keep(value)
	if p.doc = nil; values.docs {
		p.doc = bytes.Clone(doc)
	}
	p.effect.Is, p.effect.IsSession = counts.Sum{N: 1, Bytes: int64(len(doc))}, m.Session()
	p.precondition = wal.Precondition{Key: engine.MemoryKey(m.ID), LSN: old.LSN, Hint: hint, Chained: !found,
		Deletion: previous}
	p.entry = wal.Entry{Key: p.precondition.Key, Kind: record.KindPut, Value: value, Inflated: inflated,
		Cause: o.cause()}
	o.Written = true
	return nil
}
