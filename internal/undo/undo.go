package undo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// Undoer takes back what commits did.
type Undoer struct {
	engine  *engine.Engine
	commits *commit.Committer
}

// New returns an Undoer.
func New(eng *engine.Engine, cm *commit.Committer) *Undoer { return &Undoer{engine: eng, commits: cm} }

// Options choose what is taken back: the commit at Position, the commits of Run, or without either the last commit of
// the caller.
type Options struct {
	Position wal.LSN
	Run      string    // name or number of a writer
	Since    time.Time // of Run: not before this time
	Before   wal.LSN   // not at this position or behind it; 0: the end of the log
	Partial  bool      // leave out what has conflicts
}

// Plan is what an undo does.
type Plan struct {
	Options                // Position is set for the last commit of the caller, and Before
	Commits     int        // that are taken back
	First, Last wal.LSN    // positions of the first and the last of them
	Changes     []Change   // in the order in which they are made
	Conflicts   []Conflict // by kind and id
	Scopes      []string   // of working memory that they changed: that is not taken back
	Unread      []error    // parts of the log that cannot be read: what is to be taken back may be there
	Continues   bool       // an undo that was interrupted
	Done        int        // changes that were made
	Parts       []wal.LSN  // positions of the commits that made them
}

// What an undo does to a document.
const (
	Restore  = "restore"  // puts an earlier version in the place of the present one
	Undelete = "undelete" // puts a deleted document back
	Delete   = "delete"   // deletes what was created
)

// Change is what an undo does to one document.
type Change struct {
	Kind, ID string
	What     string
	Version  wal.LSN // that it replaces or deletes; 0: there is none
	Restores wal.LSN // that it puts back; of Delete, the deletion before, or 0
}

// Conflict is a document that cannot be taken back, or not as far as the first of the commits.
type Conflict struct {
	Kind, ID string
	Version  wal.LSN       // that is in the way; 0: none is
	Writer   writer.Writer // who wrote it
	Err      error         // why
}

// The reasons of conflicts. Others are errors of the store, such as a limit.
var (
	ErrBuiltUpon error = &reason{"others have built upon it", errs.ErrConflict}
	ErrPurged    error = &reason{"a purge has removed what was before", errors.Join(errs.ErrTruncated, errs.ErrPurged)}
	ErrUnkept    error = &reason{"what was before is not kept in the history", errs.ErrTruncated}
)

// reason is an error that also matches another one.
type reason struct {
	text string
	is   error
}

func (e *reason) Error() string { return e.text }
func (e *reason) Unwrap() error { return e.is }

// Error is the error of an undo that has conflicts.
type Error struct{ Plan *Plan }

func (e *Error) Error() string { return fmt.Sprintf("%d conflicts", len(e.Plan.Conflicts)) }

// Unwrap makes the error match errs.ErrConflict.
func (e *Error) Unwrap() error { return errs.ErrConflict }

// Plan returns what Undo would do. It changes nothing.
func (u *Undoer) Plan(ctx context.Context, o Options) (*Plan, error) {
	s, err := u.selection(ctx, o)
	if err != nil {
		return nil, err
	}
	p, _, err := u.plan(ctx, s)
	return p, err
}
