package varve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// embed asks for the vectors of memories' contents, by id. One text that the embedder
// does not take (too long, as a rule) would stand in the way of all, and its own words
// seldom say which it is: then the memory is looked for and named.
func (r *reembed) embed(ctx context.Context, texts map[string]string, next bool) (embedded, error) {
	known, err := r.st.embedContents(ctx, texts, next)
	var model *ModelError
	if err == nil || len(texts) == 0 || ctx.Err() != nil || errors.As(err, &model) || errors.Is(err, ErrDimension) {
		return known, err
	}
	ids := slices.Sorted(maps.Keys(texts))
	refused := func(ids []string) error {
		some := map[string]string{}
		for _, id := range ids {
			some[id] = texts[id]
		}
		_, err := r.st.embedContents(ctx, some, next)
		return err
	}
	// Where it takes neither end it takes nothing just now.
	n := len(ids)
	if n == 1 {
		return nil, fmt.Errorf("the content of memory %s: %w", quote(ids[0]), err)
	}
	if refused(ids[:1]) != nil && refused(ids[n-1:]) != nil {
		return nil, err
	}
	for len(ids) > 1 && ctx.Err() == nil {
		half := ids[:len(ids)/2]
		if refused(half) == nil {
			half = ids[len(half):]
		}
		ids = half
	}
	if why := refused(ids); why != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("the embedder does not take the content of memory %s: change it, then run it again: %w", quote(ids[0]), why)
	}
	return nil, err
}
