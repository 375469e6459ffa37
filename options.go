package varve

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/fswatch"
	"github.com/varve-db/varve/internal/open"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/scopes"
	"github.com/varve-db/varve/segment"
)

// Options is what belongs to this process; what belongs to the store is in its
// config.json. The zero value is right.
type Options struct {
	// ReadOnly changes nothing, on disk or in memory that others share. It works
	// in folders and on media that cannot be written.
	ReadOnly bool
	// MustExist refuses to make a store where there is none, with ErrNoStore.
	MustExist bool
	// CacheBytes bounds the cache of documents; 16 MiB when 0, none when negative.
	CacheBytes int64
	// LockWait is how long a lock of another process is waited for; 30 s when 0.
	LockWait time.Duration
	// Logger hears of conflicts, retries and waits (Debug), of low space, slow
	// syncs and drift (Warn), of damage (Error). The library prints nothing.
	Logger *slog.Logger
	// Listener is told what happens, where it does, with locks held: it must
	// neither block nor call the store.
	Listener func(Event)
	// Embed gives each text its vector, in the order of the texts, all of one dimension. It is
	// called without any lock, by several goroutines at once, with at most EmbedBatch texts (64
	// when 0): when a memory is written that has a content and no embedding, or another content
	// than the stored version and the same embedding. When it fails the memory is stored without
	// an embedding, and gets one later, in the background; see Health and Vectors.EmbedPending. A
	// panic is a failure; an embedder that ignores its ctx is left behind. When the write's ctx
	// ends meanwhile, the write ends with its error and nothing is stored. Package vector/embed
	// has embedders.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedModel is the name of what Embed asks. The first one by which a vector is put
	// is the store's; a process with another one stores its memories without a vector,
	// pending, until Vectors.Reembed has changed the store's model to it (ModelError).
	EmbedModel string
	EmbedBatch int
	// WatchFiles adopts edits of the files while the store is open to write, within a second
	// or so; NoBackground turns it off. Of the processes that have it set one watches, and
	// another takes over when that one ends: see EventWatching and Stats.Watcher. Without it
	// an edit is found when its file is read or replaced, and by Admin.Verify.
	WatchFiles bool
	// Clock is time.Now when nil.
	Clock func() time.Time
	// NaiveTimes is the zone of times that name none; UTC when nil.
	NaiveTimes *time.Location
	// VectorFit cuts an embedding of more dimensions than the store's, and pads one
	// of fewer with zeros, instead of refusing it; each is an Event.
	VectorFit bool
	// NoBackground leaves flushing to Flush and Close.
	NoBackground bool

	// For a store that is made: the size of its log's segments, 64 MiB when 0.
	// One commit takes at most half of one.
	SegmentSize int
	// Modes of files and folders: 0600 and 0700 when 0.
	FileMode   fs.FileMode
	FolderMode fs.FileMode

	// StateDir is a folder of this user's, outside of every store, for what belongs to
	// neither: the key by which a repair is known as made here, so that UndoRepair obeys no
	// file that came with a clone. "" means $XDG_STATE_HOME/varve, or what the system has
	// for that. Without such a folder stores are repaired, and repairs not undone.
	StateDir string

	// env is what internal/open puts here, for the project's own tests.
	env open.Environment

	// unfinished opens the copy that a migration makes, before it is a store.
	unfinished bool
	ownClock   bool // Clock is the machine's
	// restored is what is known of the vectors of a store that is being restored.
	restored *copy.Restored
}

// Validate says what is wrong, as a *FieldError.
func (o *Options) Validate() error {
	switch {
	case o.LockWait < 0:
		return &errs.FieldError{Field: "LockWait", Value: o.LockWait.String(), Err: fmt.Errorf("negative: %w", errs.ErrInvalid)}
	case o.EmbedBatch < 0:
		return &errs.FieldError{Field: "EmbedBatch", Value: fmt.Sprint(o.EmbedBatch), Err: fmt.Errorf("negative: %w", errs.ErrInvalid)}
	case o.SegmentSize != 0 && (o.SegmentSize < segment.MinSize || o.SegmentSize > segment.MaxSize || o.SegmentSize%4096 != 0):
		return &errs.FieldError{Field: "SegmentSize", Value: fmt.Sprint(o.SegmentSize), Limit: fmt.Sprintf("%d to %d, a multiple of 4096", segment.MinSize, segment.MaxSize), Err: errs.ErrInvalid}
	case o.FileMode&^fs.ModePerm != 0 || o.FileMode != 0 && o.FileMode&0o600 != 0o600:
		return &errs.FieldError{Field: "FileMode", Value: o.FileMode.String(), Err: fmt.Errorf("the owner must read and write: %w", errs.ErrInvalid)}
	case o.FolderMode&^fs.ModePerm != 0 || o.FolderMode != 0 && o.FolderMode&0o700 != 0o700:
		return &errs.FieldError{Field: "FolderMode", Value: o.FolderMode.String(), Err: fmt.Errorf("the owner must read, write and search: %w", errs.ErrInvalid)}
	}
	return nil
}

func (o *Options) fill() {
	if o.CacheBytes == 0 {
		o.CacheBytes = 16 << 20
	}
	if o.LockWait == 0 {
		o.LockWait = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Listener == nil {
		o.Listener = func(Event) {}
	}
	if o.EmbedBatch == 0 {
		o.EmbedBatch = embedding.DefaultEmbedBatch
	}
	if o.ownClock = o.Clock == nil; o.ownClock {
		o.Clock = time.Now
	}
	if o.FileMode == 0 {
		o.FileMode = 0o600
	}
	if o.FolderMode == 0 {
		o.FolderMode = 0o700
	}
	if o.StateDir == "" {
		o.StateDir = env.StateFolder(os.Getenv, runtime.GOOS)
	}
	if o.WatchFiles && o.env.Watcher == nil {
		o.env.Watcher = fswatch.New(fswatch.Options{})
	}
	s := &o.env.System
	if s.FS == nil {
		s.FS = vfs.OS()
	}
	if s.SpillBytes == 0 {
		s.SpillBytes = 64 << 20
	}
	if s.BacklogBytes == 0 {
		s.BacklogBytes = 1 << 30
	}
	if s.LagBytes == 0 {
		s.LagBytes = scopes.LagRate
	}
	if s.SmallVectors == 0 {
		s.SmallVectors = 1 << 20
	}
	if s.RoundBytes == 0 {
		s.RoundBytes = 64 << 20
	}
}

func init() {
	open.Register(
		func(o any) *open.Environment { return &o.(*Options).env },
		func(store any) open.Parts {
			st := store.(*Store)
			return open.Parts{Engine: st.engine, Vectors: &st.vectors}
		},
	)
}

// environment is that of a store in a folder; o is filled.
func (o *Options) environment(dir string) *env.Env {
	return &env.Env{
		Dir: dir, FS: vfs.Below(o.env.System.FS, dir), ReadOnly: o.ReadOnly, NoBackground: o.NoBackground, LockWait: o.LockWait,
		Logger: o.Logger, Listener: func(e env.Event) { o.Listener(publicEvent(e)) }, Clock: o.Clock, OwnClock: o.ownClock, NaiveTimes: o.NaiveTimes,
		FileMode: o.FileMode, FolderMode: o.FolderMode, StateDir: o.StateDir, System: o.env.System,
	}
}
