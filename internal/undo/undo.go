package undo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// Undoer undoes the changes of earlier commits by making new commits.
type Undoer struct {
	engine  *engine.Engine
	commits *commit.Committer
}

// New returns an Undoer.
func New(eng *engine.Engine, cm *commit.Committer) *Undoer { return &Undoer{engine: eng, commits: cm} }

// Options select what is undone: the commit at Position, the commits of Run, or, with neither, the last commit of the
// caller.
type Options struct {
	Position wal.LSN
	Run      string    // name or number of a writer
	Since    time.Time // undo only commits of Run at this time or later
	Before   wal.LSN   // undo only commits before this position; 0: the end of the log
	Partial  bool      // skip documents with conflicts
}

// Plan lists what an undo does.
type Plan struct {
	// the options that selected the commits, with Position set for the last commit of the caller, and Before always set
	Options
	Commits     int        // number of commits that are undone
	First, Last wal.LSN    // positions of the first and the last of them
	Changes     []Change   // changes in the order in which they are made
	Conflicts   []Conflict // sorted by kind and id
	Scopes      []string   // scopes of working memory that the commits changed, which is not undone
	Unread      []error    // parts of the log that cannot be read, which may have commits that should be undone
	Continues   bool       // the plan continues an undo that was interrupted
	Done        int        // number of changes that were made
	Parts       []wal.LSN  // positions of the commits that made them
}

// The actions of an undo on a document.
const (
	Restore  = "restore"  // restores an earlier version in place of the present one
	Undelete = "undelete" // restores a deleted document
	Delete   = "delete"   // deletes a document that was created
)

// Change describes what an undo does to one document.
type Change struct {
	Kind, ID string
	What     string
	Version  wal.LSN // the version that is replaced or deleted; 0: the document does not exist now
	Restores wal.LSN // the version that is restored; for Delete, the deletion before the document was created, or 0
}

// Conflict is a document whose changes cannot be undone, or can be undone only in part: the document does not get back
// to its state before the first of the commits.
type Conflict struct {
	Kind, ID string
	Version  wal.LSN       // the conflicting version; 0: no version conflicts
	Writer   writer.Writer // the writer of that version
	Err      error         // the reason
}

// The reasons of conflicts of an undo. Other reasons are errors of the store, such as a limit.
var (
	ErrBuiltUpon error = &reason{"a later change is built upon this one", errs.ErrConflict}
	ErrPurged    error = &reason{"a purge removed the previous version", errors.Join(errs.ErrTruncated, errs.ErrPurged)}
	ErrUnkept    error = &reason{"the previous version is not kept in the history", errs.ErrTruncated}
)

// errPurge means that the commit to be undone belongs to a purge, which cannot be undone.
var errPurge error = &reason{"a purge cannot be taken back", errs.ErrPurged}

// reason is an error with a text of its own that matches another error.
type reason struct {
	text string
	is   error
}

func (e *reason) Error() string { return e.text }
func (e *reason) Unwrap() error { return e.is }

// Error is the error of an undo that has conflicts. Plan lists the conflicts.
type Error struct{ Plan *Plan }

func (e *Error) Error() string { return human.Count(len(e.Plan.Conflicts), "conflict", "conflicts") }

// Unwrap makes the error match errs.ErrConflict.
func (e *Error) Unwrap() error { return errs.ErrConflict }

// Plan returns what Undo would do. It changes nothing.
func (u *Undoer) Plan(ctx context.Context, o Options) (*Plan, error) {
	s, err := u.selection(ctx, o)
	if err != nil {
		return nil, err
	}
	p, _, err := u.plan(ctx, s)
	if err == nil {
		err = u.unknown(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// unknown returns an error if p.Run is the number of a writer and, as far as is known, the store has never assigned
// this number. It returns nil if the plan has commits, or if parts of the log could not be read.
func (u *Undoer) unknown(ctx context.Context, p *Plan) error {
	n, err := strconv.ParseUint(p.Run, 10, 32)
	if err != nil || p.Commits > 0 || len(p.Unread) > 0 {
		return nil
	}
	t, err := u.engine.Writers(ctx)
	if err != nil {
		return err
	}
	if _, known := t.Of(uint32(n), math.MaxUint64); known {
		return nil
	}
	return fmt.Errorf("writer %d: %w", n, errs.ErrNotFound)
}
