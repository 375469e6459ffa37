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

// A text that the embedder does not take (too long, as a rule) does not stand in the way
// of the others: its memory is left without an embedding, pending. An embedder that does
// not answer is another thing, and its own words seldom say which it is. So a text is
// held for refused only if it alone failed refusedTries times, behind each of which the
// embedder took another text; and before the model is changed all such are asked once
// more.

// Refusal is a memory whose content the embedder did not take.
type Refusal struct {
	ID  string
	Err error
}

type refused struct {
	sum [32]byte // of what the memory itself says
	err error
}

const refusedTries = 3

// mostRefusals is how many a report has.
const mostRefusals = 1000

// ProbeText is what the embedder is asked while it has taken nothing in this run.
const ProbeText = "a text"

// embed asks for the vectors of what memories say, by text; those that it refuses have
// none, and are noted.
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

// by is how the vectors are made that are stored at once; nil: their turn has not come.
func (r *reembed) by(next bool) *maker {
	if next {
		return nil
	}
	return r.maker
}

// passes reports whether an error may be of one of the texts.
func passes(ctx context.Context, err error) bool {
	var model *errs.ModelError
	return ctx.Err() == nil && !errors.As(err, &model) && !errors.Is(err, vector.ErrDimension)
}

// ask adds the vectors of some texts to those that are known.
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

// probe asks for a text that the embedder took before.
func (r *reembed) probe(ctx context.Context, next bool) error {
	text := r.taken
	if text == "" {
		text = ProbeText
	}
	_, err := r.em.embedContents(ctx, map[string]said{"": {text: text}}, r.by(next), forUser)
	return err
}

// divide finds the texts that made all of them fail.
func (r *reembed) divide(ctx context.Context, ids []string, texts map[string]said, next bool, known embedded,
	why error) error {
	if len(ids) == 1 {
		return r.alone(ctx, ids[0], texts, next, known, why)
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

// alone tells a text that is refused from an embedder that does not answer.
func (r *reembed) alone(ctx context.Context, id string, texts map[string]said, next bool, known embedded,
	why error) error {
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
		why = err
	}
	if r.refused == nil {
		r.refused = map[string]refused{}
	}
	r.refused[id] = refused{sha256.Sum256([]byte(texts[id].own)), why}
	r.em.engine.Env().Logger.Warn("the embedder refuses the content of a memory, which stays without an embedding", "id",
		id, "err", why)
	return nil
}

// refuses reports whether a content of a memory was refused in this run; that of one which
// has changed since was not.
func (r *reembed) refuses(id string, sum [32]byte) bool {
	was, ok := r.refused[id]
	if ok && was.sum != sum {
		delete(r.refused, id)
	}
	return ok && was.sum == sum
}

// askAgain asks once more for all that was refused.
func (r *reembed) askAgain(ctx context.Context) error {
	ids := slices.Sorted(maps.Keys(r.refused))
	clear(r.refused)
	return r.batches(ids, func(ids []string) error {
		list, err := r.computeSome(ctx, ids, nil)
		r.report.Computed += int64(len(list))
		return err
	})
}

// none says why no content has a vector, if there is any that should.
func (r *reembed) none() error {
	for _, id := range slices.Sorted(maps.Keys(r.refused)) {
		return fmt.Errorf("the embedder refuses all of the %d contents, the first is that of memory %s: %w", len(r.refused),
			human.Quote(id), r.refused[id].err)
	}
	return nil
}

// tellRefused reports what is left without an embedding.
func (r *reembed) tellRefused() {
	r.report.Refused = int64(len(r.refused))
	for _, id := range slices.Sorted(maps.Keys(r.refused)) {
		if len(r.report.Refusals) < mostRefusals {
			r.report.Refusals = append(r.report.Refusals, Refusal{id, r.refused[id].err})
		}
	}
}
