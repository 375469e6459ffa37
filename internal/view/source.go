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

// Source is an open store as this package sees it. The root fills it.
type Source struct {
	FS    vfs.FS
	Dir   string
	Log   *wal.FileLog
	State *state.State
	Codec *record.Codec

	// CatchUp catches up with the log and maps the newest index.
	CatchUp func(context.Context) error
	// Views yields what is wrong with the files of the views that plug in.
	Views func(context.Context) iter.Seq[repair.Finding]
	// Config says what is wrong with config.json as it stands.
	Config func() error
	// Token names this process's own folder in tmp/; "" when the store is not open to write.
	Token string
	// Inline: start no goroutines.
	Inline bool
	// FileLimit bounds the bytes of one document, Limits what is in it.
	FileLimit int
	Limits    kind.Limits
	Location  *time.Location // of times without a zone
	// Fits says why a document of a kind may not be written by today's limits.
	Fits func(kind byte, id string, doc []byte) error
	// Creates says why a document of a kind may not be created beside those that there are.
	Creates func(kind byte, id string) error
	// Explain adds to an error of the system what helps; nil where nothing is known.
	Explain func(error) error
}

// Explained is Explain.
func (s *Source) Explained(err error) error {
	if s.Explain == nil {
		return err
	}
	return s.Explain(err)
}

// Place takes path and offset out of damage.
func Place(err error, path string) (string, int64) {
	var c *errs.CorruptionError
	if errors.As(err, &c) {
		return c.Path, c.Offset
	}
	return path, -1
}
