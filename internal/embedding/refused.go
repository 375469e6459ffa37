package embedding

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/vector"
)

// A text that the embedder refuses (usually because it is too long) does not block the others: its memory stays without
// an embedding, pending. The embedder's error seldom shows whether the text is refused or the embedder is unavailable.
// So a text counts as refused only if it failed alone refusedTries times, and after each failure the embedder accepted
// another text. Before the switch of the model all refused texts are tried once more.

// Refusal is a memory whose content the embedder refused.
type Refusal struct {
	ID  string
	Err error
}

type refused struct {
	sum [32]byte // hash of the memory's own part of the text
	err error
}

const refusedTries = 3

// mostRefusals is the maximum number of refused memories that a report lists.
const mostRefusals = 1000

// ProbeText is the text with which a re-embedding tests whether the embedder works, as long as the embedder
// has accepted no other text in this run.
const ProbeText = "a text"

// embed returns the vectors of texts. If the embedder refuses a text, embed records that, and the result has no vector
// for the text.
func (r *reembed) embed(ctx context.Context, texts map[string]said, next bool) (embedded, error) {
	known := embedded{}
	if len(texts) == 0 {
		return known, nil
	}
	ids := slices.Sorted(maps.Keys(texts))
	err := r.ask(ctx, ids, texts, next, known)
	if err == nil || !passes(ctx, err) {
		return known, err
	}
	if r.probe(ctx, next) != nil {
		return known, err
	}
	return known, r.divide(ctx, ids, texts, next, known, err)
}

// by returns the maker of vectors that are stored at once. If next is true, by returns nil: the vectors are made by the
// next model, and are not stored yet.
func (r *reembed) by(next bool) *maker {
	if next {
		return nil
	}
	return r.maker
}

// passes reports whether err, the error of a call with several texts, may be caused by only some of the texts.
func passes(ctx context.Context, err error) bool {
	var model *errs.ModelError
	return ctx.Err() == nil && !errors.As(err, &model) && !errors.Is(err, vector.ErrDimension)
}

// ask requests the vectors of the texts of the memories ids from the embedder, and adds the vectors to known. If
// next is true, the vectors are vectors of the next model, and are not stored yet.
func (r *reembed) ask(ctx context.Context, ids []string, texts map[string]said, next bool, known embedded) error {
	some := map[string]said{}
	for _, id := range ids {
		some[id] = texts[id]
	}
	list, err := r.em.embedContents(ctx, some, r.by(next), forUser)
	if err != nil {
		return err
	}
	maps.Copy(known, list)
	r.taken = texts[ids[0]].text
	return nil
}

// probe tests whether the embedder works, by a call with a text that it has accepted before.
func (r *reembed) probe(ctx context.Context, next bool) error {
	text := r.taken
	if text == "" {
		text = ProbeText
	}
	_, err := r.em.embedContents(ctx, map[string]said{"": {text: text}}, r.by(next), forUser)
	return err
}

// divide requests the texts of a failed batch again in smaller batches, to find the texts that the embedder
// refuses. cause is the error of the failed batch.
func (r *reembed) divide(ctx context.Context, ids []string, texts map[string]said, next bool, known embedded,
	cause error) error {
	if len(ids) == 1 {
		return r.alone(ctx, ids[0], texts, next, known, cause)
	}
	for _, half := range [][]string{ids[:len(ids)/2], ids[len(ids)/2:]} {
		err := r.ask(ctx, half, texts, next, known)
		if err != nil && passes(ctx, err) {
			err = r.divide(ctx, half, texts, next, known, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alone requests the vector of the text of a single memory several times, to decide whether the embedder refuses
// the text or is unavailable. cause is the error of the request that failed before. If the embedder refuses the
// text, alone records this and returns nil. If the embedder is unavailable, alone returns an error.
func (r *reembed) alone(ctx context.Context, id string, texts map[string]said, next bool, known embedded,
	cause error) error {
	for try := 1; ; try++ {
		if err := r.probe(ctx, next); err != nil {
			return err
		}
		if try == refusedTries {
			break
		}
		err := r.ask(ctx, []string{id}, texts, next, known)
		if err == nil || !passes(ctx, err) {
			return err
		}
		cause = err
	}
	if r.refused == nil {
		r.refused = map[string]refused{}
	}
	r.refused[id] = refused{sha256.Sum256([]byte(texts[id].own)), cause}
	r.em.engine.Env().Logger.Warn("the embedder refuses the content of a memory; the memory has no embedding", "id",
		id, "err", cause)
	return nil
}

// refuses reports whether the embedder has refused this content of a memory in this run. sum is the hash of the
// content. If the embedder has refused another content of the memory, refuses deletes the record of that refusal.
func (r *reembed) refuses(id string, sum [32]byte) bool {
	was, ok := r.refused[id]
	if ok && was.sum != sum {
		delete(r.refused, id)
	}
	return ok && was.sum == sum
}

// askAgain requests the vectors of the texts of all refused memories once more, and adds the vectors to the file of
// computed vectors. It records again the texts that the embedder still refuses.
func (r *reembed) askAgain(ctx context.Context) error {
	ids := slices.Sorted(maps.Keys(r.refused))
	clear(r.refused)
	return r.batches(ids, func(ids []string) error {
		list, err := r.computeSome(ctx, ids, nil)
		r.report.Computed += int64(len(list))
		return err
	})
}

// refusalError returns an error that names the first refused memory. The caller calls refusalError if no memory
// with content got a vector. refusalError returns nil if the embedder refused no memory.
func (r *reembed) refusalError() error {
	for _, id := range slices.Sorted(maps.Keys(r.refused)) {
		return fmt.Errorf("the embedder refused the content of all %d memories; the first is memory %s: %w",
			len(r.refused),
			human.Quote(id), r.refused[id].err)
	}
	return nil
}

// tellRefused adds to the report the memories that have no embedding because the embedder refused their content.
func (r *reembed) tellRefused() {
	r.report.Refused = int64(len(r.refused))
	for _, id := range slices.Sorted(maps.Keys(r.refused)) {
		if len(r.report.Refusals) < mostRefusals {
			r.report.Refusals = append(r.report.Refusals, Refusal{id, r.refused[id].err})
		}
	}
}
