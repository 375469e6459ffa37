package varve

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/fswatch"
	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/internal/store"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/writer"
)

// Options are the settings of this process; the settings of the store are in its config.json. The zero value selects
// the defaults.
type Options struct {
	// ReadOnly opens the store without changing anything on disk or in memory shared with other
	// processes. It works in folders and on media that cannot be written; if the store there lacks its
	// log or index (a clone), Open reads all files and makes a log and an index in a temporary
	// folder, which exists until Close.
	ReadOnly bool
	// MustExist makes Open fail with ErrNoStore, instead of creating a store, if the folder has no store.
	MustExist bool
	// CacheBytes is the maximum size of the cache of documents in this process, in bytes including the overhead of
	// each; 0 means 64 MiB, a negative number no cache. The cache has documents that were recently read, or written
	// except in batches of 64 and more. A document above a quarter of the maximum size is not cached.
	CacheBytes int64
	// LockWait is how long to wait for a lock of another process; 0 means 30 s.
	LockWait time.Duration
	// Logger receives conflicts, retries and waits (Debug), low space, slow syncs and drift (Warn),
	// and damage (Error). The library prints nothing.
	Logger *slog.Logger
	// Listener is called for each Event, on the goroutine where it occurs and with locks held: it
	// must neither block nor call the store.
	Listener func(Event)
	// Embed returns the vector of each text, in the order of the texts, all of one dimension. It is called without any
	// lock, by several goroutines at once, with at most EmbedBatch texts (0 means 64).
	//
	// Embed is called when a memory is written that has a content and no embedding, or whose content differs from that
	// of the stored version while the embedding is the same. If Embed fails, the memory is stored without an embedding
	// and gets one later, in the background; see Health and Vectors.EmbedPending. If the ctx of the write ends
	// meanwhile, the write returns its error and nothing is stored.
	//
	// After three failures in a row the embedder is down: writes no longer wait for it (EmbedderError). It is then
	// called again by one call at a time, after a back-off of 5 s that doubles up to 5 min. Errors with a method
	// Answered() bool that returns true do not count: the service answered, and refused the text. A panic is a failure;
	// an embedder that ignores its ctx is abandoned. Package vector/embed has embedders.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedModel is the name of the model that Embed uses, without the template (VectorConfig.Template). The model of
	// the first vector that is put becomes the store's. A process with another model stores its memories without a
	// vector, pending, until Vectors.Reembed has made that model the store's (ModelError).
	EmbedModel string
	EmbedBatch int
	// EmbedTimeout is how long a write or a query waits for one call of Embed; 0 means 30 s.
	EmbedTimeout time.Duration
	// EmbedService identifies the service that Embed calls, for example by URL and model. Processes of this user with
	// the same EmbedService then inform each other, through a file in StateDir, when it is down. "" keeps this within
	// the process.
	EmbedService string
	// WatchFiles adopts edits of the files within a second or so while the store is open to write; NoBackground turns
	// this off. One of the processes that set it watches; another takes over when that process ends: see EventWatching
	// and Stats.Watcher. Without WatchFiles an edit is found when its file is read or replaced, and by Admin.Verify.
	WatchFiles bool
	// Clock returns the current time of day; nil means time.Now. It may jump: deletions by age also depend on the
	// machine's uptime, which no Clock replaces.
	Clock func() time.Time
	// NaiveTimes is the time zone in which times without a zone are read; nil means UTC.
	NaiveTimes *time.Location
	// VectorFit truncates an embedding of more dimensions than the store's, and pads one of fewer with zeros, instead
	// of refusing it; each time there is an Event.
	VectorFit bool
	// NoBackground disables background flushes: Flush and Close write to the files, and so does a write that finds more
	// than 1 GiB of log that the index does not cover.
	NoBackground bool
	// Inflate writes all documents of the log to their files, however highly they are compressed in the log. Without it
	// a flush fails with an *InflatedError when more than 256 MiB of documents are compressed more than 64-fold. Logs
	// of this version have no such documents; only a log of an older version, or a forged one, has them.
	Inflate bool

	// Writer describes the writer that uses this handle: the program, the agent, its session, the client. The store
	// assigns a number to the description, and each version has the number of its writer from then on: see
	// Version.Writer, WrittenBy and Store.Log. Host, PID and Started are filled in. nil: versions have no writer, and
	// the store is written as by versions of this library without writers. The first Writer raises a feature of the
	// store: older programs can then no longer write to it. A name has at most writer.MostName bytes; control
	// characters in it are escaped.
	Writer *Writer

	// SegmentSize is the size in bytes of the log's segments in a new store; 0 means 64 MiB. One
	// commit takes at most half a segment.
	SegmentSize int
	// FileMode and FolderMode are the modes of files and folders; 0 means 0600 and 0700.
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	// Shared makes a new store belong to the group of its folder: the folder gets mode 2770, and every user of the
	// group may use the store. For an existing store, the mode of its folder decides.
	Shared bool

	// StateDir is a folder of this user, outside of every store. It contains the file through which processes with the
	// same EmbedService inform each other, and the files that bind a store to its copy elsewhere. "" means
	// $XDG_STATE_HOME/varve, or the system's folder for such files.
	StateDir string

	// Remote opens the place of the store's copy (Offsite.Add). If it is set, and the store is open to write with
	// background work, this process sends what is durable to the copy, unless another process of the machine does: each
	// second, behind the writers, which never wait for it. URL is the one that Offsite.Add was given, and comes from
	// StateDir: no file of a store causes a connection. nil: this process does not send. OpenFolder opens URLs of
	// folders; ParseURL and Open of package remote/s3 open buckets.
	Remote func(ctx context.Context, url string) (remote.Remote, error)
	// SealRemote returns a function that encrypts to the recipients of a sealed copy (Offsite.AddSealed), whose public
	// keys are given as text. Without it this process sends nothing to a sealed copy.
	SealRemote func(recipients []string) (func(w io.Writer) (io.WriteCloser, error), error)

	// env replaces parts of the machine in the project's own tests: see internal/storetest.
	env store.Environment

	// unfinished opens a copy that a migration is making and that is not a store yet.
	unfinished bool
	// restored describes the vectors of a store that is being restored; nil for any other store.
	restored *backup.Restored
	// cloned opens a clone, which must be taken before it can be written, for writing.
	cloned bool
	// closed is called at the end of Close; see openBeside.
	closed func() error
}

// Validate returns the first invalid option as a *FieldError, or nil.
func (o *Options) Validate() error {
	switch {
	case o.LockWait < 0:
		return &errs.FieldError{Field: "LockWait", Value: o.LockWait.String(),
			Err: fmt.Errorf("negative: %w", errs.ErrInvalid)}
	case o.EmbedTimeout < 0:
		return &errs.FieldError{Field: "EmbedTimeout", Value: o.EmbedTimeout.String(),
			Err: fmt.Errorf("negative: %w", errs.ErrInvalid)}
	case o.EmbedBatch < 0:
		return &errs.FieldError{Field: "EmbedBatch", Value: fmt.Sprint(o.EmbedBatch),
			Err: fmt.Errorf("negative: %w", errs.ErrInvalid)}
	case o.SegmentSize != 0 && (o.SegmentSize < segment.MinSize || o.SegmentSize > segment.MaxSize ||
		o.SegmentSize%4096 != 0):
		return &errs.FieldError{Field: "SegmentSize", Value: fmt.Sprint(o.SegmentSize),
			Limit: fmt.Sprintf("%d to %d, a multiple of 4096", segment.MinSize, segment.MaxSize), Err: errs.ErrInvalid}
	case o.FileMode&^fs.ModePerm != 0 || o.FileMode != 0 && o.FileMode&0o600 != 0o600:
		return &errs.FieldError{Field: "FileMode", Value: o.FileMode.String(),
			Err: fmt.Errorf("the owner must have permission to read and write: %w", errs.ErrInvalid)}
	case o.FolderMode&^fs.ModePerm != 0 || o.FolderMode != 0 && o.FolderMode&0o700 != 0o700:
		return &errs.FieldError{Field: "FolderMode", Value: o.FolderMode.String(),
			Err: fmt.Errorf("the owner must have permission to read, write and search: %w", errs.ErrInvalid)}
	}
	if o.Writer != nil {
		if name, value := o.Writer.TooLong(); name != "" {
			return &errs.FieldError{Field: "Writer." + name, Value: fmt.Sprintf("of %d bytes", len(value)),
				Limit: fmt.Sprintf("%d bytes", writer.MostName), Err: errs.ErrTooLarge}
		}
	}
	return nil
}

func (o *Options) fill() {
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
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
	if o.EmbedTimeout == 0 {
		o.EmbedTimeout = embedding.DefaultEmbedTimeout
	}
	if o.EmbedBatch == 0 {
		o.EmbedBatch = embedding.DefaultEmbedBatch
	}
	if o.Clock == nil {
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

// environment returns the env.Env with which the internal packages use the store in the folder dir: its file system,
// limits, clock, logger and listener. The defaults of o must be filled in.
func (o *Options) environment(dir string) *env.Env {
	return &env.Env{
		Dir: dir, FS: vfs.Patient(vfs.Only(o.env.System.FS, o.StateDir, dir), o.LockWait), ReadOnly: o.ReadOnly,
		NoBackground: o.NoBackground, LockWait: o.LockWait,
		Logger: o.Logger, Listener: func(e env.Event) { o.Listener(publicEvent(e)) }, Clock: o.Clock,
		NaiveTimes: o.NaiveTimes,
		FileMode:   o.FileMode, FolderMode: o.FolderMode, Shared: o.Shared, StateDir: o.StateDir,
		Self: vfs.SelfOn(o.env.System.FS, os.Getenv), System: o.env.System, Meters: new(meter.Meters),
	}
}
