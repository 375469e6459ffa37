package complete

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// Memories returns a completion that proposes ids of memories: those written last, or those that begin with the typed
// text.
func Memories(a *cli.App) cobra.CompletionFunc { return fromStore(a, memories(a.Clock)) }

// Assemblies returns a completion that proposes ids of assemblies.
func Assemblies(a *cli.App) cobra.CompletionFunc { return fromStore(a, assemblies) }

// Sessions returns a completion that proposes ids of sessions.
func Sessions(a *cli.App) cobra.CompletionFunc {
	return fromStore(a, func(ctx context.Context, st *varve.Store, _ string, offer func(word) bool) {
		for s, err := range st.Sessions().All(ctx) {
			if err == nil && !offer(word{s.ID, cli.Count(int(s.Memories), "memory", "memories")}) {
				return
			}
		}
	})
}

// Scopes returns a completion that proposes the scopes that have working memory.
func Scopes(a *cli.App) cobra.CompletionFunc {
	return fromStore(a, func(ctx context.Context, st *varve.Store, _ string, offer func(word) bool) {
		for s, err := range st.Working().Home().Scopes(ctx) {
			if err == nil && !offer(word{text: s.Key()}) {
				return
			}
		}
	})
}

// Quarantine returns a completion that proposes the names of the files in quarantine/, the newest first.
func Quarantine(a *cli.App) cobra.CompletionFunc {
	return fromStore(a, func(ctx context.Context, st *varve.Store, _ string, offer func(word) bool) {
		var list []varve.Quarantined
		for q, err := range st.Admin().Quarantine().All(ctx) {
			if err == nil {
				list = append(list, q)
			}
		}
		for _, q := range slices.Backward(list) {
			if !offer(word{q.Name, descriptionOf(q.From + " " + q.Reason)}) {
				return
			}
		}
	})
}

// spans are the periods that are searched for the newest memories, one after the other. Most stores have enough new
// memories in a day or less, and reading a whole store takes longer than a user waits.
var spans = []time.Duration{10 * time.Minute, 2 * time.Hour, 24 * time.Hour, 30 * 24 * time.Hour}

// most is the maximum number of documents that are read for one completion.
const most = 1000

func memories(clock func() time.Time) source {
	return func(ctx context.Context, st *varve.Store, begun string, offer func(word) bool) {
		if begun == "" {
			newest(ctx, st, clock(), offer)
			return
		}
		for m, err := range st.Memories(ctx, varve.WithPrefix(begun)) {
			if err == nil && !offer(memory(&m)) || ctx.Err() != nil {
				return
			}
		}
	}
}

func newest(ctx context.Context, st *varve.Store, now time.Time, offer func(word) bool) {
	type dated struct {
		word
		version uint64
	}
	var list []dated
	for i := range len(spans) + 1 {
		var filters []varve.Filter
		if i < len(spans) {
			filters = append(filters, varve.Updated(now.Add(-spans[i]), time.Time{}))
		}
		list = list[:0]
		for m, err := range st.Memories(ctx, filters...) {
			if err == nil {
				list = append(list, dated{memory(&m), m.Version})
			}
			if len(list) == most || ctx.Err() != nil {
				break
			}
		}
		if len(list) >= Most || ctx.Err() != nil {
			break
		}
	}
	slices.SortFunc(list, func(a, b dated) int { return cmp.Compare(b.version, a.version) })
	for _, d := range list {
		if !offer(d.word) {
			return
		}
	}
}

func memory(m *varve.Memory) word { return word{m.ID, descriptionOf(m.Content)} }

func assemblies(ctx context.Context, st *varve.Store, begun string, offer func(word) bool) {
	for as, err := range st.Assemblies().All(ctx, varve.WithPrefix(begun)) {
		if err == nil && !offer(word{as.ID, descriptionOf(as.Name)}) || ctx.Err() != nil {
			return
		}
	}
}
