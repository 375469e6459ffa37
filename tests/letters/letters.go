package letters

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/wal"
)

// Name is the name of the view, Folder the folder with its File.
const (
	Name   = "letters"
	Folder = places.Views + "/" + Name
	File   = "ids.json"
)

// Letters is the view.
type Letters struct {
	eng *engine.Engine
	ids map[string]bool

	resets int // how often it was made from the index
}

// New implements views.Maker.
func New(eng *engine.Engine) view.View { return &Letters{eng: eng} }

// Name implements view.View.
func (l *Letters) Name() string { return Name }

// Reset implements view.Fold.
func (l *Letters) Reset(_ context.Context, set *index.Set) error {
	l.ids, l.resets = map[string]bool{}, l.resets+1
	for e, err := range set.Range(index.Memories, index.Span{}) {
		if err != nil {
			return err
		}
		l.ids[string(e.Key)] = true
	}
	return nil
}

// Apply implements view.Fold.
func (l *Letters) Apply(_ context.Context, _ *index.Set, e *wal.Entry) error {
	if l.eng.Kinds().Of(e.Key) != l.eng.Kinds().Memories {
		return nil
	}
	if delete(l.ids, e.Key[1:]); !e.Delete {
		l.ids[strings.Clone(e.Key[1:])] = true
	}
	return nil
}

// Covered implements view.Fold.
func (l *Letters) Covered(*index.Set) bool { return true }

type file struct {
	LSN uint64   `json:"lsn"`
	Sum uint64   `json:"sum"`
	IDs []string `json:"ids"`
}

// Load implements view.View.
func (l *Letters) Load(f *view.Folder) (wal.Mark, error) {
	data, err := f.Read(File, 1<<30)
	if err != nil {
		return wal.Mark{}, err
	}
	var has file
	if err := json.Unmarshal(data, &has); err != nil {
		return wal.Mark{}, &errs.CorruptionError{Path: f.Path, Offset: -1, Err: err}
	}
	l.ids = map[string]bool{}
	for _, id := range has.IDs {
		l.ids[id] = true
	}
	return wal.Mark{LSN: has.LSN, Sum: has.Sum}, nil
}

// Save implements view.View.
func (l *Letters) Save(_ context.Context, f *view.Folder, at wal.Mark) error {
	data, err := json.Marshal(file{at.LSN, at.Sum, slices.Sorted(maps.Keys(l.ids))})
	if err != nil {
		return err
	}
	return f.Write(File, data)
}

// Close implements view.View.
func (l *Letters) Close() error { return nil }

// Verify implements view.View.
func (l *Letters) Verify(ctx context.Context, f *view.Folder, set *index.Set) error {
	is := Letters{eng: l.eng}
	if err := is.Reset(ctx, set); err != nil {
		return err
	}
	if !maps.Equal(is.ids, l.ids) {
		return &errs.CorruptionError{Path: f.Path, Offset: -1,
			Err: fmt.Errorf("it has %d memories, the index %d others", len(l.ids), len(is.ids))}
	}
	return nil
}

// Query answers queries from an open store, as of each call or later.
type Query struct {
	eng    *engine.Engine
	view   *Letters
	follow engine.Follower
}

// NewQuery returns a Query, which is valid as long as the store is open.
func NewQuery(eng *engine.Engine) *Query {
	q := &Query{eng: eng, view: &Letters{eng: eng}}
	q.follow.Fold = view.FromFiles{View: q.view, Folder: eng.ViewFolder(Name)}
	return q
}

// Counts returns the numbers of memories by first letter.
func (q *Query) Counts(ctx context.Context) (map[byte]int, error) {
	if err := q.eng.CatchUp(ctx); err != nil {
		return nil, err
	}
	counts := map[byte]int{}
	err := q.follow.With(ctx, q.eng, func(*index.Set, int64) error {
		for id := range q.view.ids {
			counts[id[0]]++
		}
		return nil
	})
	if err != nil {
		err = q.eng.DamageOf(err)
	}
	return counts, err
}
