package varve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/wal"
)

// How long the background waits after a failure of the embedder: doubled each
// time, from the first to the last.
const (
	embedFirstWait = time.Second
	embedLastWait  = 5 * time.Minute
)

// mostQueued bounds the ids that wait on the heap. The index has the others.
const mostQueued = 10_000

// embedLater notes a memory that has no vector because the embedder failed.
func (st *Store) embedLater(id string) {
	e := &st.embedding
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.queued[id]:
	case len(e.queue) < mostQueued:
		e.queued[id] = true
		e.queue = append(e.queue, id)
	case e.scan:
		e.again = true // it may be past this one
	default:
		e.scan, e.after = true, ""
	}
	st.kickEmbedding()
}

func (st *Store) kickEmbedding() {
	select {
	case st.embedding.kick <- struct{}{}:
	default:
	}
}

// runEmbedding gives vectors to what has none: what is left from before, and
// what could not get one when it was put.
func (st *Store) runEmbedding(ctx context.Context) {
	e := &st.embedding
	e.mu.Lock()
	e.scan = true
	e.mu.Unlock()
	if n, err := st.lacking(ctx); err == nil {
		e.mu.Lock()
		e.unseen = n
		e.mu.Unlock()
	}
	most, wait := st.o.EmbedBatch, embedFirstWait
	for {
		ids, err := st.nextQueued(ctx, most)
		if err == nil && len(ids) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-e.kick:
			}
			continue
		}
		if err == nil {
			_, err = st.embedStored(ctx, ids)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			most, wait = min(2*most, st.o.EmbedBatch), embedFirstWait
			continue
		}
		if len(ids) == 1 { // a text that the embedder does not take must not keep the others back
			st.dequeue(ids, true)
		}
		most = max(len(ids)/2, 1)
		if !st.waitToEmbed(ctx, wait) {
			return
		}
		wait = min(2*wait, embedLastWait)
	}
}

// waitToEmbed waits out a failure; a call of somebody else that went well ends it.
func (st *Store) waitToEmbed(ctx context.Context, wait time.Duration) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	slept := make(chan error, 1)
	go func() { slept <- st.engine.Env.Sleep(ctx, wait) }()
	for {
		select {
		case err := <-slept:
			return err == nil
		case <-st.embedding.kick:
			st.embedding.mu.Lock()
			works := st.embedding.err == nil
			st.embedding.mu.Unlock()
			if works {
				stop()
				<-slept
				return true
			}
		}
	}
}

// nextQueued gives the ids that come next, and fills the queue from the index
// while that has more. Those that the embedder refuses stay in the queue.
func (st *Store) nextQueued(ctx context.Context, most int) ([]string, error) {
	e := &st.embedding
	e.mu.Lock()
	scan, after := e.scan && len(e.queue) < mostQueued/2, e.after
	e.mu.Unlock()
	if scan {
		var found []string
		err := st.engine.Sight(ctx)
		if err == nil {
			for l, lerr := range st.engine.Lines(ctx, st.engine.Kinds.Memories, engine.Filters{After: after}) {
				if lerr != nil {
					if l.ID == "" {
						err = lerr
						break
					}
					continue // verify reports it
				}
				after = l.ID
				if l.Line.Dimension <= 0 {
					if found = append(found, l.ID); len(found) == 1000 {
						break
					}
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("looking for memories without a vector: %w", err)
		}
		e.mu.Lock()
		e.after = after
		if len(found) < 1000 {
			e.scan, e.after, e.unseen, e.again = e.again, "", 0, false
		} else {
			e.unseen = max(e.unseen-int64(len(found)), 0)
		}
		for _, id := range found {
			if !e.queued[id] {
				e.queued[id] = true
				e.queue = append(e.queue, id)
			}
		}
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.queue[:min(most, len(e.queue))]...), nil
}

// dequeue takes ids off the queue, or puts them to its end.
func (st *Store) dequeue(ids []string, back bool) {
	e := &st.embedding
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		delete(e.queued, id)
	}
	e.queue = slices.DeleteFunc(e.queue, func(id string) bool { return !e.queued[id] })
	for _, id := range ids {
		if back {
			e.queued[id] = true
			e.queue = append(e.queue, id)
		}
	}
}

// lacking counts the memories that the index knows no vector of.
func (st *Store) lacking(ctx context.Context) (n int64, err error) {
	if err := st.engine.Sight(ctx); err != nil {
		return 0, err
	}
	for l, err := range st.engine.Lines(ctx, st.engine.Kinds.Memories, engine.Filters{}) {
		if err != nil && l.ID == "" {
			return n, err
		}
		if err == nil && l.Line.Dimension <= 0 {
			n++
		}
	}
	return n, nil
}

// EmbedPending gives vectors to the memories that have a content and no
// embedding, and says how many got one. A store with an embedder does it in the
// background; this is for hosts without one (NoBackground). It ends at the first
// failure of the embedder.
func (st *Store) EmbedPending(ctx context.Context) (int64, error) {
	if err := st.engine.Begun(); err != nil {
		return 0, err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return 0, err
	}
	if st.o.Embed == nil {
		return 0, &errs.FieldError{Field: "Embed", Err: fmt.Errorf("%w: the store was opened without an embedder", errs.ErrInvalid)}
	}
	if err := st.engine.Sight(ctx); err != nil {
		return 0, err
	}
	var done int64
	var ids []string
	write := func() error {
		n, err := st.embedStored(ctx, ids)
		done += n
		ids = ids[:0]
		return err
	}
	for l, err := range st.engine.Lines(ctx, st.engine.Kinds.Memories, engine.Filters{}) {
		if err != nil {
			return done, err
		}
		if l.Line.Dimension > 0 {
			continue
		}
		if ids = append(ids, l.ID); len(ids) == st.o.EmbedBatch {
			if err := write(); err != nil {
				return done, err
			}
		}
	}
	return done, write()
}

// embedStored gives vectors to stored memories, in one commit if that can take
// them; those that have one by then, or another content, are left alone.
func (st *Store) embedStored(ctx context.Context, ids []string) (int64, error) {
	contents, err := st.contents(ctx, ids, func(m *Memory) bool { return len(m.Embedding) == 0 && vectors.Embeddable(m.Content) })
	if err != nil {
		return 0, err
	}
	if len(contents) == 0 {
		st.dequeue(ids, false)
		return 0, nil
	}
	known, err := st.embedContents(ctx, contents, false)
	if err != nil {
		return 0, err
	}
	n, err := st.inParts(ids, func(ids []string) (int64, error) { return st.setEmbeddings(ctx, ids, contents, known) })
	if err == nil {
		st.dequeue(ids, false)
		return n, nil
	}
	if ctx.Err() == nil {
		st.embedding.mu.Lock()
		st.embedding.err = err
		st.embedding.mu.Unlock()
	}
	return n, err
}

// inParts writes memories in one commit or, where they are too much for one, in
// several: these are the store's own batches, and nobody could make them smaller.
func (st *Store) inParts(ids []string, write func(ids []string) (int64, error)) (int64, error) {
	n, err := write(ids)
	if !errors.Is(err, errs.ErrBatchTooLarge) || len(ids) < 2 {
		return n, err
	}
	half := len(ids) / 2
	n, err = st.inParts(ids[:half], write)
	if err != nil {
		return n, err
	}
	m, err := st.inParts(ids[half:], write)
	return n + m, err
}

// setEmbeddings gives memories whose contents are still these their vectors.
func (st *Store) setEmbeddings(ctx context.Context, ids []string, contents map[string]string, known embedded) (n int64, err error) {
	err = st.transact(ctx, nil, func(tx *commit.Tx) error {
		n = 0
		if err := tx.Suits(); err != nil {
			return err
		}
		for _, id := range ids {
			text, ok := contents[id]
			if !ok {
				continue
			}
			m, err := tx.Get(id)
			if errors.Is(err, errs.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if len(m.Embedding) > 0 || m.Content != text {
				continue // somebody was faster; whoever changed the content has asked for its vector
			}
			commit.SetEmbedding(&m, known[text])
			tx.PutEmbedded(&m)
			n++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// contents are those of the memories that are wanted.
func (st *Store) contents(ctx context.Context, ids []string, wanted func(*Memory) bool) (map[string]string, error) {
	all := map[string]string{}
	return all, st.eachOf(ctx, ids, func(m *Memory, _ wal.LSN) {
		if wanted(m) {
			all[m.ID] = m.Content
		}
	})
}

// eachOf reads memories. What is gone is left out; what is damaged too, which verify
// reports.
func (st *Store) eachOf(ctx context.Context, ids []string, take func(m *Memory, at wal.LSN)) error {
	for _, id := range ids {
		v, err := st.engine.Find(ctx, st.engine.Kinds.Memories, id, true)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, errs.ErrClosed) {
				return err
			}
			continue
		}
		if m, err := st.engine.Decode(id, v); err == nil && !v.Expired(st.engine.Env.Clock()) {
			take(&m, v.LSN)
		}
	}
	return nil
}

// embedContents asks for the vectors of contents, each text once, in the order
// of the ids.
func (st *Store) embedContents(ctx context.Context, contents map[string]string, next bool) (embedded, error) {
	known := embedded{}
	var texts []string
	for _, id := range slices.Sorted(maps.Keys(contents)) {
		text := contents[id]
		if _, ok := known[text]; !ok {
			known[text] = nil
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return known, nil
	}
	list, err := st.embed(ctx, texts, next)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		known[text] = list[i]
	}
	return known, nil
}

// waitingForVectors is how many memories wait for the embedder, as far as this
// process knows, and why.
func (st *Store) waitingForVectors() (int64, error) {
	e := &st.embedding
	e.mu.Lock()
	defer e.mu.Unlock()
	n := int64(len(e.queue)) + e.unseen
	if n == 0 {
		return 0, nil
	}
	return n, e.err
}
