package view

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// Source gives package view access to an open store. The package that opens the store sets its fields.
type Source struct {
	FS    vfs.FS
	Dir   string
	Log   *wal.FileLog
	State *state.State
	Codec *record.Codec

	// CatchUp catches up with the log and maps the newest index.
	CatchUp func(context.Context) error
	// Views yields the findings about the files of the views.
	Views func(context.Context) iter.Seq[repair.Finding]
	// Config returns what is wrong with the current config.json, or nil.
	Config func() error
	// Token is the name of this process's own folder in tmp/; "" if the store is not open for writing.
	Token string
	// Inline means that no goroutines may be started.
	Inline bool
	// FileLimit is the maximum size of a document in bytes; Limits bound its contents.
	FileLimit int
	Limits    kind.Limits
	Location  *time.Location // zone in which times without a zone are read
	// Fits returns an error if a document of a kind violates the current limits.
	Fits func(kind byte, id string, doc []byte) error
	// Creates returns an error if a document of a kind cannot be created because the paths of existing documents
	// exclude its path.
	Creates func(kind byte, id string) error
	// Ignores reports whether a file in the folder of a kind, which is not a document yet, must not become one, because
	// notes_ignore names it or because it is in the folder of another store; nil: no file is ignored.
	Ignores func(kind byte, path string) bool
	// Explain adds advice to a system error; it returns nil if it has no advice.
	Explain func(error) error
}

// Explained returns err. If Source.Explain has advice about the error, Explained adds the advice.
func (s *Source) Explained(err error) error {
	if s.Explain == nil {
		return err
	}
	return s.Explain(err)
}

// Place returns the path and offset of a *errs.CorruptionError in err; otherwise path and -1.
func Place(err error, path string) (string, int64) {
	var c *errs.CorruptionError
	if errors.As(err, &c) {
		return c.Path, c.Offset
	}
	return path, -1
}
