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
	sum [32]byte // hash of the memory's own part of the refused text
	err error
}

const refusedTries = 3

// mostRefusals is the maximum number of refusals in a report.
const mostRefusals = 1000

// ProbeText is the text with which the embedder is called while it has accepted no text in this run.
const ProbeText = "a text"

// embed returns the vectors of texts. Refused texts have none and are recorded.
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

// by returns how vectors that are stored at once are made, or nil for vectors of the next model.
func (r *reembed) by(next bool) *maker {
	if next {
		return nil
	}
	return r.maker
}

// passes reports whether err may be caused by one of the texts.
func passes(ctx context.Context, err error) bool {
	var model *errs.ModelError
	return ctx.Err() == nil && !errors.As(err, &model) && !errors.Is(err, vector.ErrDimension)
}

// ask adds the vectors of some texts to known.
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

// probe calls the embedder with a text that it accepted before.
func (r *reembed) probe(ctx context.Context, next bool) error {
	text := r.taken
	if text == "" {
		text = ProbeText
	}
	_, err := r.em.embedContents(ctx, map[string]said{"": {text: text}}, r.by(next), forUser)
	return err
}

// divide finds the texts because of which the whole batch failed.
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

// alone decides whether a text is refused or the embedder is unavailable.
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

// refuses reports whether this content of a memory was refused in this run. A refusal of an earlier content is dropped.
func (r *reembed) refuses(id string, sum [32]byte) bool {
	was, ok := r.refused[id]
	if ok && was.sum != sum {
		delete(r.refused, id)
	}
	return ok && was.sum == sum
}

// askAgain calls the embedder once more for all refused texts.
func (r *reembed) askAgain(ctx context.Context) error {
	ids := slices.Sorted(maps.Keys(r.refused))
	clear(r.refused)
	return r.batches(ids, func(ids []string) error {
		list, err := r.computeSome(ctx, ids, nil)
		r.report.Computed += int64(len(list))
		return err
	})
}

// none returns an error if all contents were refused, or nil if there is no content.
func (r *reembed) none() error {
	for _, id := range slices.Sorted(maps.Keys(r.refused)) {
		return fmt.Errorf("the embedder refused all %d contents, first that of memory %s: %w", len(r.refused),
			human.Quote(id), r.refused[id].err)
	}
	return nil
}

// tellRefused adds the memories without an embedding to the report.
func (r *reembed) tellRefused() {
	r.report.Refused = int64(len(r.refused))
	for _, id := range slices.Sorted(maps.Keys(r.refused)) {
		if len(r.report.Refusals) < mostRefusals {
			r.report.Refusals = append(r.report.Refusals, Refusal{id, r.refused[id].err})
		}
	}
}
