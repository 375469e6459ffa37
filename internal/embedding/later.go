package embedding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// The pause of the background goroutine after a failure of the embedder. It doubles from the first value up to the
// last.
const (
	embedFirstWait = time.Second
	embedLastWait  = 5 * time.Minute
)

// MostQueued is the maximum number of memories that are queued for embedding. Further memories without a
// vector are found through the index.
const MostQueued = 10_000

// EmbedLater queues a memory for embedding in the background, because the embedder failed when the memory was put.
func (em *Embedding) EmbedLater(id string) {
	e := em
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.queued[id]:
	case len(e.queue) < MostQueued:
		e.queued[id] = true
		e.queue = append(e.queue, id)
	case e.Scan:
		e.Again = true // the scan may have passed this memory
	default:
		e.Scan, e.After = true, ""
	}
	em.kickEmbedding()
}

func (em *Embedding) kickEmbedding() {
	select {
	case em.kick <- struct{}{}:
	default:
	}
}

// Run embeds the memories that have no vector: an earlier process did not embed them, or the embedder failed when they
// were put. Run returns when ctx ends.
func (em *Embedding) Run(ctx context.Context) {
	e := em
	e.mu.Lock()
	e.Scan = true
	e.mu.Unlock()
	if n, err := em.lacking(ctx); err == nil {
		e.mu.Lock()
		e.unseen = n
		e.mu.Unlock()
	}
	most, wait := em.config.Batch, embedFirstWait
	for {
		ids, err := em.NextQueued(ctx, most)
		if err == nil && len(ids) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-e.kick:
			}
			continue
		}
		if err == nil {
			_, err = em.embedQueued(ctx, ids)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			most, wait = min(2*most, em.config.Batch), embedFirstWait
			continue
		}
		if rest := em.breaker.rest(); rest > 0 {
			if !em.waitToEmbed(ctx, max(rest, wait)) {
				return
			}
			continue
		}
		if len(ids) == 1 { // a refused text must not hold up the others
			em.Dequeue(ids, true)
		}
		most = max(len(ids)/2, 1)
		if !em.waitToEmbed(ctx, wait) {
			return
		}
		wait = min(2*wait, embedLastWait)
	}
}

// embedQueued embeds some of the queued memories, and returns the number of memories that got a vector. If the embedder
// was down, embedQueued first calls it with a plain text. So if the embedder works but refuses the text of a queued
// memory, the embedder does not continue to count as down.
func (em *Embedding) embedQueued(ctx context.Context, ids []string) (int64, error) {
	if em.breaker.rest() > 0 {
		if _, err := em.embed(ctx, []string{ProbeText}, nil, forQueue); err != nil {
			return 0, err
		}
	}
	return em.embedStored(ctx, ids, forQueue)
}

// waitToEmbed pauses after the embedder has failed. A successful call by another goroutine ends the pause. It
// returns false if ctx ends.
func (em *Embedding) waitToEmbed(ctx context.Context, wait time.Duration) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	slept := make(chan error, 1)
	go func() { slept <- em.engine.Env().Sleep(ctx, wait) }()
	for {
		select {
		case err := <-slept:
			return err == nil
		case <-em.kick:
			em.mu.Lock()
			works := em.err == nil
			em.mu.Unlock()
			if works {
				stop()
				<-slept
				return true
			}
		}
	}
}

// NextQueued returns the ids of the next queued memories, but no more than limit ids. If the queue is short and the
// index has more memories without a vector, NextQueued adds them to the queue. Ids stay in the queue until Dequeue.
func (em *Embedding) NextQueued(ctx context.Context, limit int) ([]string, error) {
	e := em
	e.mu.Lock()
	scan, after := e.Scan && len(e.queue) < MostQueued/2, e.After
	e.mu.Unlock()
	if scan {
		var found []string
		err := em.engine.CatchUp(ctx)
		if err == nil {
			for l, lerr := range em.engine.Lines(ctx, em.engine.Kinds().Memories, engine.Filters{After: after}) {
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
			return nil, fmt.Errorf("finding memories without a vector: %w", err)
		}
		e.mu.Lock()
		e.After = after
		if len(found) < 1000 {
			e.Scan, e.After, e.unseen, e.Again = e.Again, "", 0, false
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
	return append([]string(nil), e.queue[:min(limit, len(e.queue))]...), nil
}

// Dequeue removes memories from the queue for embedding. If back is true, it moves them to the end of the queue
// instead.
func (em *Embedding) Dequeue(ids []string, back bool) {
	e := em
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

// lacking returns the number of memories that have no vector according to the index.
func (em *Embedding) lacking(ctx context.Context) (n int64, err error) {
	if err := em.engine.CatchUp(ctx); err != nil {
		return 0, err
	}
	for l, err := range em.engine.Lines(ctx, em.engine.Kinds().Memories, engine.Filters{}) {
		if err != nil && l.ID == "" {
			return n, err
		}
		if err == nil && l.Line.Dimension <= 0 {
			n++
		}
	}
	return n, nil
}

// Pending embeds the memories that have content and either no embedding or one of zeros, and returns the number of
// memories that got a vector. It stops at the first failure of the embedder.
func (em *Embedding) Pending(ctx context.Context) (int64, error) {
	if em.config.Call == nil {
		return 0, errNone
	}
	if err := em.engine.CatchUp(ctx); err != nil {
		return 0, err
	}
	view, err := em.vectors.View(ctx)
	if err != nil {
		return 0, err
	}
	defer view.Release()
	var row []byte
	zeros := func(id string) bool { // or unknown: the document decides
		var ok bool
		row, _, ok, err = view.Row(row[:0], vector.Memories, id)
		return err == nil && (!ok || len(bytes.Trim(row, "\x00")) == 0)
	}
	var done int64
	var ids []string
	write := func() error {
		n, err := em.embedStored(ctx, ids, forUser)
		done += n
		ids = ids[:0]
		return err
	}
	for l, err := range em.engine.Lines(ctx, em.engine.Kinds().Memories, engine.Filters{}) {
		if err != nil {
			return done, err
		}
		if l.Line.Dimension > 0 && !zeros(l.ID) {
			continue
		}
		if ids = append(ids, l.ID); len(ids) == em.config.Batch {
			if err := write(); err != nil {
				return done, err
			}
		}
	}
	return done, write()
}

// embedStored embeds the stored memories ids, in one commit if possible, and returns the number of memories that
// got a vector. If a memory gets a vector or another content meanwhile, embedStored skips the memory. caller is
// the kind of caller of the embedder.
func (em *Embedding) embedStored(ctx context.Context, ids []string, caller waiter) (int64, error) {
	if err := em.engine.CatchUp(ctx); err != nil {
		return 0, err
	}
	var list []*memstore.Memory
	session := false
	err := em.eachOf(ctx, ids, func(m *memstore.Memory, _ wal.LSN) {
		if !em.vectors.Meaningful(m.Embedding) && vectors.Embeddable(m.Content) {
			list = append(list, m)
			session = session || m.Session() != ""
		}
	})
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		em.Dequeue(ids, false)
		return 0, nil
	}
	how := em.now(session)
	says, err := em.texts(ctx, how.template, list, nil)
	if err != nil {
		return 0, err
	}
	contents := map[string]said{}
	for _, m := range list {
		contents[m.ID] = said{own: how.template.Own(m), text: says[m]}
	}
	known, err := em.embedContents(ctx, contents, how, caller)
	if err != nil {
		return 0, err
	}
	n, err := em.inParts(ids,
		func(ids []string) (int64, error) { return em.setEmbeddings(ctx, ids, contents, known, how) })
	if err == nil {
		em.Dequeue(ids, false)
		return n, nil
	}
	if ctx.Err() == nil {
		em.mu.Lock()
		em.err = err
		em.mu.Unlock()
	}
	return n, err
}

// inParts calls write with all ids, or, if they do not fit into one commit, with parts of ids one after another. It
// returns the sum of the results. inParts divides the batch itself, because the user has not chosen the size of the
// batch and could not reduce it.
func (em *Embedding) inParts(ids []string, write func(ids []string) (int64, error)) (int64, error) {
	n, err := write(ids)
	if !errors.Is(err, errs.ErrBatchTooLarge) || len(ids) < 2 {
		return n, err
	}
	half := len(ids) / 2
	n, err = em.inParts(ids[:half], write)
	if err != nil {
		return n, err
	}
	m, err := em.inParts(ids[half:], write)
	return n + m, err
}

// setEmbeddings stores the vectors in known for the memories ids, and returns the number of vectors that it
// stored. It skips a memory that already has a vector, and a memory whose text is no longer the text in contents.
// mk is the maker of the vectors.
func (em *Embedding) setEmbeddings(ctx context.Context, ids []string, contents map[string]said, known embedded,
	mk *maker) (n int64, err error) {
	err = em.Transact(ctx, nil, func(tx *commit.Tx) error {
		n = 0
		if err := tx.Suits(mk.name); err != nil {
			return err
		}
		for _, id := range ids {
			c, ok := contents[id]
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
			if em.vectors.Meaningful(m.Embedding) || mk.template.Own(&m) != c.own {
				continue // another write was faster; one that changed the content has requested its own vector
			}
			commit.SetEmbedding(&m, known[c.text])
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

// eachOf calls the function take for each of the given memories, with the version of the memory. It skips deleted,
// expired and damaged memories; verify reports the damaged ones.
func (em *Embedding) eachOf(ctx context.Context, ids []string, take func(m *memstore.Memory, at wal.LSN)) error {
	for _, id := range ids {
		v, err := em.engine.Find(ctx, em.engine.Kinds().Memories, id, true)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, errs.ErrClosed) {
				return err
			}
			continue
		}
		if m, err := em.engine.Decode(id, v); err == nil && !v.Expired(em.engine.Env().Clock()) {
			take(&m, v.LSN)
		}
	}
	return nil
}

// embedContents returns the vectors of the texts in contents, by text. The keys of contents are ids of memories. A
// text that several memories have is requested only once. mk and wait have the same meaning as for embed.
func (em *Embedding) embedContents(ctx context.Context, contents map[string]said, mk *maker,
	wait waiter) (embedded, error) {
	known := embedded{}
	var texts []string
	for _, id := range slices.Sorted(maps.Keys(contents)) {
		text := contents[id].text
		if _, ok := known[text]; !ok {
			known[text] = nil
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return known, nil
	}
	list, err := em.embed(ctx, texts, mk, wait)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		known[text] = list[i]
	}
	return known, nil
}

// Waiting returns the number of memories that are to be embedded, as far as this process knows. If there are any, it
// also returns the last error of the embedder.
func (em *Embedding) Waiting() (int64, error) {
	e := em
	e.mu.Lock()
	defer e.mu.Unlock()
	n := int64(len(e.queue)) + e.unseen
	if n == 0 {
		return 0, nil
	}
	return n, e.err
}
