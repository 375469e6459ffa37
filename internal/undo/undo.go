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
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// Undoer undoes commits.
type Undoer struct {
	engine  *engine.Engine
	commits *commit.Committer
}

// New returns an Undoer.
func New(eng *engine.Engine, cm *commit.Committer) *Undoer { return &Undoer{engine: eng, commits: cm} }

// Options select the commits that are undone: the commit at Position, the commits of Run, or, with neither, the last
// commit of the caller.
type Options struct {
	Position wal.LSN
	Run      string    // name or number of a writer
	Since    time.Time // of Run, only commits at this time or later
	Before   wal.LSN   // only commits before this position; 0: up to the end of the log
	Partial  bool      // skip documents with conflicts
}

// Plan describes what an undo does.
type Plan struct {
	Options                // Position is set for the last commit of the caller, and Before
	Commits     int        // number of commits that are undone
	First, Last wal.LSN    // positions of the first and the last of these commits
	Changes     []Change   // the changes, in the order in which they are made
	Conflicts   []Conflict // the conflicts, by kind and id
	Scopes      []string   // scopes of working memory that the commits changed; these changes are not undone
	Unread      []error    // parts of the log that cannot be read, which may have commits that should be undone
	Continues   bool       // the undo was interrupted and is continued
	Done        int        // changes that were made
	Parts       []wal.LSN  // positions of the commits that made them
}

// The ways in which an undo changes a document.
const (
	Restore  = "restore"  // an earlier version is restored in place of the present one
	Undelete = "undelete" // a deleted document is restored
	Delete   = "delete"   // a document that the commits created is deleted
)

// Change is the change that an undo makes to one document.
type Change struct {
	Kind, ID string
	What     string
	Version  wal.LSN // the version that the change replaces or deletes; 0: there is none
	Restores wal.LSN // the version that the change restores; of Delete, the deletion before, or 0
}

// Conflict describes a document whose changes cannot be undone, or not as far back as the first of the commits.
type Conflict struct {
	Kind, ID string
	Version  wal.LSN       // the conflicting version; 0: there is none
	Writer   writer.Writer // the writer of that version
	Err      error         // the reason
}

// The reasons of conflicts. Other reasons are errors of the store, such as a limit.
var (
	ErrBuiltUpon error = &reason{"others have built upon it", errs.ErrConflict}
	ErrPurged    error = &reason{"a purge has removed what was before", errors.Join(errs.ErrTruncated, errs.ErrPurged)}
	ErrUnkept    error = &reason{"what was before is not kept in the history", errs.ErrTruncated}
)

// errPurge is the error for undoing the commit of a purge.
var errPurge error = &reason{"a purge cannot be taken back", errs.ErrPurged}

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

// Plan returns a description of what Undo would do. It changes nothing.
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

// unknown returns an error for a run that is a number which no commit has and which was, as far as
// known, never issued.
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
