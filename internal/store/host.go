package store

import (
	"context"
	"errors"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/rebuild"
	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/wal"
)

// host implements the Host interfaces: functions with which lower parts of a store call higher parts.
type host struct{ st *Store }

var (
	_ engine.Host  = host{}
	_ vectors.Host = host{}
	_ commit.Host  = host{}
	_ flush.Host   = host{}
)

// The engine's calls.

func (h host) RebuildIndex(ctx context.Context,
	start *wal.Start) (set *index.Set, from string, memories int, err error) {
	want := rebuild.Want{Store: start.UUID, At: wal.Mark{LSN: start.Spilled, Sum: start.Sum}}
	return h.st.Rebuilder.From(ctx, want, start.Past)
}

func (h host) JudgeEdit(ctx context.Context, k *engine.Kind, id string) (engine.Version, error) {
	return h.st.Adopter.JudgeEdit(ctx, k, id)
}

func (h host) FlushDue() { h.st.Flusher.Wake(h.st.Engine.Settings().Now().FlushAfter()) }

func (h host) NoteRefused(e *wal.Entry, err error) { h.st.Flusher.NoteRefused(e, err) }

func (h host) NoteWorked(scope string, pos uint64) { h.st.Scopes.NoteWorked(scope, pos) }

// The vectors' calls.

func (h host) Embedder() string { return h.st.Embedding.Model() }

func (h host) OlderComposite(ctx context.Context, model *index.Model, p *engine.Parsed) ([]float32, error) {
	return h.st.Committer.OlderComposite(ctx, model, p)
}

// The committer's calls.

func (h host) Suits(model *index.Model) error { return h.st.Embedding.Suits(model) }

// The flusher's calls.

func (h host) JudgeAside(ctx context.Context, held *wal.Held, aside []docfile.Edit) {
	h.st.Adopter.AdoptAside(ctx, held, aside)
}

func (h host) Upkeep(ctx context.Context) {
	h.st.Retention.Upkeep(ctx)
	h.st.Purger.OverwriteDue(ctx)
	h.st.Adopter.ResumeVanished(ctx)
}

func (h host) CheckParked(ctx context.Context) { h.st.Adopter.CheckParked(ctx) }

func (h host) PutScopes(ctx context.Context, keys []string, distrusted bool,
	spares func(key string, err error) bool) error {
	return h.st.Scopes.PutScopes(ctx, keys, distrusted, spares)
}

func (h host) MayLag(ctx context.Context, key string, flushed wal.LSN) (first wal.LSN, ok bool) {
	return h.st.Scopes.MayLag(ctx, key, flushed)
}

func (h host) OursScope(key string, minLSN wal.LSN, data func() ([]byte, error)) bool {
	return h.st.Scopes.OursScope(key, minLSN, data)
}

// sectionTexts implements embedding.Sections.
type sectionTexts struct {
	*meanings.Query
	st *Store
}

// Add implements embedding.Sections. The files of the vectors belong to an index. So if the store has no index yet,
// Add flushes the store, which writes the first index.
func (s sectionTexts) Add(ctx context.Context, model string, list []meanings.Vector) (int, error) {
	n, err := s.st.Views.AddMeanings(ctx, model, list)
	if errors.Is(err, views.ErrNoIndex) {
		if err := s.st.Flusher.Flush(ctx, flush.MergeFlush); err != nil {
			return 0, err
		}
		n, err = s.st.Views.AddMeanings(ctx, model, list)
	}
	return n, err
}
