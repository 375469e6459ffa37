package varve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/undo"
)

// UndoOptions select the commits that Store.Undo takes back: the commit at Position, or the commits of Run. If neither
// is set, Undo takes back the last commit of the caller.
type UndoOptions struct {
	// Position is a position in a commit, such as Commit.LSN or a version that the commit made. A position in an undo
	// of several commits selects all of that undo.
	Position uint64
	// Run is the number or a name of a writer, as in LogOptions.By, for example the name of its session. All its
	// commits are taken back, except deletions of expired documents.
	Run     string
	Since   time.Time // only commits of Run at this time or later
	Before  uint64    // only commits before this position; 0: the end of the log
	Partial bool      // omit documents with conflicts
}

// The actions of an undo on a document.
const (
	UndoRestore  = undo.Restore  // restore an earlier version in place of the newest one
	UndoUndelete = undo.Undelete // restore a deleted document
	UndoDelete   = undo.Delete   // delete a document that was created
)

// UndoChange is the action of an undo on one memory or assembly.
type UndoChange struct {
	Kind, ID string
	What     string // UndoRestore, UndoUndelete or UndoDelete
	Version  uint64 // the newest version, which is replaced or deleted; 0: none
	Restores uint64 // the version that is restored; for UndoDelete the deletion before the document was created, or 0
}

// UndoConflict is a memory or an assembly that an undo cannot take back to its state before the first of the selected
// commits. The undo either leaves the document unchanged, or takes back only some of the commits that changed it.
type UndoConflict struct {
	Kind, ID string
	Version  uint64 // the conflicting version, of another commit; 0: none
	Writer   Writer // writer of Version; Number 0: unknown
	// Err is the reason: ErrBuiltUpon, ErrPurged or ErrUnkept, with the details, or another error of the store.
	Err error
}

// UndoPlan lists what an undo will do, and after Undo what it did.
type UndoPlan struct {
	// UndoOptions are the options that selected the commits. Position is set if the last commit of the caller is taken
	// back, and Before is always set: an undo with these options takes back the same commits.
	UndoOptions
	Commits     int            // number of commits that are taken back
	First, Last uint64         // positions of the first and the last of them
	Changes     []UndoChange   // changes in the order in which they are made
	Conflicts   []UndoConflict // documents that are not taken back
	Scopes      []string       // scopes of working memory that the commits changed, which are not taken back
	Unread      []error        // parts of the log that cannot be read and may have more commits to take back
	Continues   bool           // the plan completes an undo that was interrupted
	Done        int            // number of changes that were made; 0 in a plan
	Parts       []uint64       // positions of the commits that made the changes
}

// The reasons of conflicts; test for them with errors.Is.
var (
	ErrBuiltUpon = undo.ErrBuiltUpon // a newer version, or an assembly, depends on what is to be taken back
	ErrUnkept    = undo.ErrUnkept    // the previous version is neither in the log nor in its archive
)

// UndoError is the error of an undo with conflicts. With UndoOptions.Partial the undo has nevertheless taken back the
// documents that have no conflict. Without it, the undo has changed nothing, unless the conflict arose after the first
// of several commits of the undo (see Store.Undo). UndoError matches ErrConflict.
type UndoError struct{ Plan UndoPlan }

func (e *UndoError) Error() string {
	p := &e.Plan
	what := fmt.Sprintf("%d of %d documents cannot be taken back", len(p.Conflicts), len(p.Changes)+len(p.Conflicts))
	switch {
	case len(p.Conflicts) > 0:
		c := &p.Conflicts[0]
		what += fmt.Sprintf(": %s %s: %v", c.Kind, human.Quote(c.ID), c.Err)
		if n := len(p.Conflicts) - 1; n > 0 {
			what += fmt.Sprintf(" (and %d more)", n)
		}
	case len(p.Unread) > 0:
		what = fmt.Sprintf("a part of the log cannot be read: %v", p.Unread[0])
	}
	if p.Done > 0 {
		return what + fmt.Sprintf("; the other %d changes were taken back", p.Done)
	}
	return what + "; nothing was changed"
}

// Unwrap makes the error match ErrConflict.
func (e *UndoError) Unwrap() error { return errs.ErrConflict }

// PlanUndo returns what Undo would do, with its conflicts. It changes nothing.
func (st *Store) PlanUndo(ctx context.Context, o UndoOptions) (*UndoPlan, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer st.inner.Engine.EndUse()
	p, err := st.inner.Undoer.Plan(ctx, undo.Options(o))
	return planOf(p), err
}

// Undo takes back the changes that commits made to memories and assemblies. It restores the exact bytes that the
// commits replaced or deleted, including times, embeddings and members that this program version does not know. It
// deletes the documents that the commits created. A document that the commits did not change, or that is already as it
// was before them, is not changed. An undo is a commit like others, so it can be undone.
//
// A document is a conflict if another commit has changed it since, if an assembly that the undo does not restore or
// delete would change with it, or if its previous version is no longer kept or was purged. If there is a conflict,
// Undo changes nothing and returns an *UndoError, which contains the whole plan. With UndoOptions.Partial, Undo takes
// back the changes of the other documents.
//
// If the store has added a count of accesses or an embedding to a document after the commits, Undo takes back this
// addition together with the document. An expiry in the past is not restored, and neither is an embedding by a
// previous model of the store. Expired documents are restored only if UndoOptions.Position selects their deletion. If
// max_age had removed a document, it will be removed again. An undo never exceeds a limit of the store, and never
// evicts memories to stay below it: it fails with a *LimitError.
//
// Undo is one commit, or several commits if one would be more than half a segment. Between these commits the store may
// have more memories than its limits allow. If an undo of several commits is interrupted, it is completed by an undo
// with the same options, or by an undo of the caller's last commit, in any process. Other processes may write
// meanwhile: their changes are not overwritten. If they change a document after the first of several commits, Undo
// takes back the rest and returns an *UndoError.
//
// The caller's own commits are those of the same program on the same machine, for the same agent, session, client and
// token, in any process. Undo ignores commits that changed only working memory, and commits that the store made
// itself. If neither Options.Writer nor Position nor Run is set, the error is ErrInvalid. If no commit is at Position,
// or no writer has the name Run, the error is ErrNotFound. An undo raises the store's feature level, as Options.Writer
// does.
func (st *Store) Undo(ctx context.Context, o UndoOptions) (*UndoPlan, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.inner.Engine.Writable(); err != nil {
		return nil, err
	}
	plan, err := st.inner.Undoer.Undo(ctx, undo.Options(o))
	p := planOf(plan)
	if conflicts := (*undo.Error)(nil); errors.As(err, &conflicts) && p != nil {
		err = &UndoError{*p}
	}
	return p, err
}

func planOf(p *undo.Plan) *UndoPlan {
	if p == nil {
		return nil
	}
	plan := &UndoPlan{UndoOptions: UndoOptions(p.Options), Commits: p.Commits, First: p.First, Last: p.Last,
		Scopes: p.Scopes, Unread: p.Unread, Continues: p.Continues, Done: p.Done, Parts: p.Parts}
	has := map[[2]string]bool{}
	for _, c := range p.Changes {
		has[[2]string{c.Kind, c.ID}] = true
	}
	for _, c := range p.Conflicts {
		has[[2]string{c.Kind, c.ID}] = true
	}
	// A companion is part of its document: it is named only where the document itself is not.
	named := func(noun, id string) (string, bool) {
		for _, k := range kind.Kinds {
			if of, companion := k.Document(id); k.Noun == noun && companion {
				return of, !has[[2]string{noun, of}]
			}
		}
		return id, true
	}
	for _, c := range p.Changes {
		if id, ok := named(c.Kind, c.ID); ok {
			c.ID = id
			plan.Changes = append(plan.Changes, UndoChange(c))
		}
	}
	for _, c := range p.Conflicts {
		if id, ok := named(c.Kind, c.ID); ok {
			c.ID = id
			plan.Conflicts = append(plan.Conflicts, UndoConflict(c))
		}
	}
	if p.Done == len(p.Changes) {
		plan.Done = len(plan.Changes)
	}
	return plan
}
