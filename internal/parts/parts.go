package parts

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/rebuild"
	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Host implements, for tests, the interfaces through which the lower parts of a store call higher packages. A test may
// set Judge and Aside. If Judge is nil, edits are not supported; if Aside is nil, files in quarantine are ignored.
type Host struct {
	Judge  func(ctx context.Context, k *engine.Kind, id string) (engine.Version, error)
	Aside  func(ctx context.Context, held *wal.Held, aside []docfile.Edit)
	maker  *rebuild.Maker
	scopes *scopes.Scopes
}

// RebuildIndex rebuilds the index with package rebuild.
func (h *Host) RebuildIndex(ctx context.Context, start *wal.Start) (*index.Set, string, int, error) {
	want := rebuild.Want{Store: start.UUID, At: wal.Mark{LSN: start.Spilled, Sum: start.Sum}}
	return h.maker.From(ctx, want, start.Past)
}

// JudgeEdit calls h.Judge. If Judge is nil, it returns errors.ErrUnsupported.
func (h *Host) JudgeEdit(ctx context.Context, k *engine.Kind, id string) (engine.Version, error) {
	if h.Judge == nil {
		return engine.Version{}, errors.ErrUnsupported
	}
	return h.Judge(ctx, k, id)
}

// JudgeAside calls the function h.Aside, which a test may set.
func (h *Host) JudgeAside(ctx context.Context, held *wal.Held, aside []docfile.Edit) {
	if h.Aside != nil {
		h.Aside(ctx, held, aside)
	}
}

// PutScopes calls the method of the same name of package scopes, which keeps working memory. MayLag, OursScope and
// NoteWorked do the same.
func (h *Host) PutScopes(ctx context.Context, keys []string, distrusted bool,
	spares func(key string, err error) bool) error {
	return h.scopes.PutScopes(ctx, keys, distrusted, spares)
}

func (h *Host) MayLag(ctx context.Context, key string, flushed wal.LSN) (first wal.LSN, ok bool) {
	return h.scopes.MayLag(ctx, key, flushed)
}

func (h *Host) OursScope(key string, minLSN wal.LSN, data func() ([]byte, error)) bool {
	return h.scopes.OursScope(key, minLSN, data)
}

func (h *Host) NoteWorked(scope string, pos uint64) { h.scopes.NoteWorked(scope, pos) }

// The remaining methods stand for parts that a test does not have: no embedder, nothing expires, no
// round is due by itself.

func (h *Host) FlushDue()                     {}
func (h *Host) NoteRefused(*wal.Entry, error) {}
func (h *Host) Embedder() string              { return "" }
func (h *Host) Suits(*index.Model) error      { return nil }
func (h *Host) Upkeep(context.Context)        {}
func (h *Host) CheckParked(context.Context)   {}

func (h *Host) OlderComposite(context.Context, *index.Model, *engine.Parsed) ([]float32, error) {
	return nil, errors.ErrUnsupported
}

// Parts has the lower parts of a store in a folder, open until the test ends.
type Parts struct {
	Host      *Host
	Env       *env.Env
	Engine    *engine.Engine
	Vectors   *vectors.Vectors
	Counts    *counts.Counts
	Views     *views.Views
	Words     *words.Query
	Sections  *words.Query
	Meanings  *meanings.Query
	Orders    *words.Orders
	Flusher   *flush.Flusher
	Scopes    *scopes.Scopes
	Committer *commit.Committer
}

// New builds the parts of a store in a folder, and creates the store if it does not exist. No background work runs.
func New(t testing.TB, dir string) *Parts {
	t.Helper()
	e := environment(dir)
	p := &Parts{Host: new(Host), Env: e}
	s := settings.New(e)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	p.Engine, err = engine.New(e, s, p.Host, engine.Config{
		Limits: func() (memstore.Limits, assembly.Limits) { return s.Now().MemoryLimits(), s.Now().AssemblyLimits() },
	})
	must(err)
	must(p.Engine.Begin(t.Context(), false))
	p.Vectors, p.Counts = vectors.New(p.Engine, p.Host), counts.New(p.Engine)
	p.Views = views.New(p.Engine, views.All)
	p.Words, p.Sections, p.Orders = p.Views.Words()
	p.Meanings = p.Views.Meanings()
	p.Host.maker = rebuild.New(p.Engine, p.Vectors, p.Views, nil)
	p.Flusher, err = flush.New(p.Engine, p.Vectors, p.Views, p.Host.maker, p.Host, false)
	must(err)
	p.Scopes = scopes.New(p.Engine, p.Flusher)
	p.Host.scopes = p.Scopes
	p.Committer = commit.New(p.Engine, p.Vectors, p.Counts, p.Flusher, p.Host, commit.Config{Clock: p.Scopes})
	p.Engine.SetOrders(p.Orders, p.Orders.Times)
	id, err := e.UUID()
	must(err)
	must(p.Engine.OpenLog(t.Context(), wal.Options{
		FS: e.FS, Dir: e.Dir, UUID: id, NewAbove: p.Engine.HighestKnown, Named: p.Engine.NamedUUID, Create: true,
		Known: wal.Features(e.System.Features), LockWait: e.LockWait, FileMode: e.FileMode, DirMode: e.FolderMode,
		Clock: e.Clock, Nonce: e.Nonce, Logger: e.Logger, Event: e.LogEvent, Archive: s.History, Unsent: s.Unsent,
		Config: s.Exists, Machine: p.Engine.Machine(), Rescue: p.Flusher.Rescue, Resides: p.Engine.CheckMoved,
	}))
	t.Cleanup(func() {
		if err := errors.Join(p.Flusher.Close(), p.Vectors.Close(), p.Vectors.Computed().Close(), p.Views.Close(),
			p.Engine.Log().Close(), p.Engine.State().Close()); err != nil {
			t.Error(err)
		}
		e.Release()
	})
	return p
}

func environment(dir string) *env.Env {
	system := vfs.OS()
	return &env.Env{
		Dir: dir, FS: vfs.Only(system, "", dir), NoBackground: true, LockWait: 10 * time.Second,
		Logger: slog.New(slog.DiscardHandler), Listener: func(env.Event) {}, Clock: time.Now,
		FileMode: 0o600, FolderMode: 0o700,
		System: vfs.System{FS: system, SpillBytes: 64 << 20, BacklogBytes: 1 << 30, LagBytes: 1 << 20, RoundBytes: 64 << 20,
			TempFiles: 1 << 16, ArchiveBytes: 256 << 20, SmallVectors: 1 << 20, WordsRows: 1 << 17},
	}
}

// Put commits a memory and returns its version.
func (p *Parts) Put(t testing.TB, m memstore.Memory) wal.LSN {
	t.Helper()
	if err := p.Committer.Commit(t.Context(), []commit.Op{{ID: m.ID, Memory: &m}}, nil, 0); err != nil {
		t.Fatal(err)
	}
	return m.Version
}

// Flush writes files, index and views.
func (p *Parts) Flush(t testing.TB) {
	t.Helper()
	if err := p.Flusher.Flush(t.Context(), flush.MergeFlush); err != nil {
		t.Fatal(err)
	}
}
