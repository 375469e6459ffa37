package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// mergedAtOnce is the number of memories that Merge changes in one commit.
const mergedAtOnce = 200

// Count returns the number of memories of each project in a store. The keys of the map are the ids of the projects; ""
// is the part that all projects share. Count reads all memories.
func Count(ctx context.Context, st *varve.Store) (map[string]int, error) {
	all, unread := map[string]int{}, []error(nil)
	for m, err := range st.Memories(ctx) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			unread = append(unread, err)
			continue
		}
		all[Of(&m)]++
	}
	return all, errors.Join(unread...)
}

// MergeOptions selects how Merge treats data that cannot be moved to another project.
type MergeOptions struct {
	// LeaveWorking keeps the working memory of the project where it is, although no agent of the other project
	// finds it there.
	LeaveWorking bool
}

// Merged has the numbers of memories and notes that Merge has moved.
type Merged struct{ Memories, Notes int }

// WorkingError is the error of Merge for a project that has working memory. Working memory belongs to a scope, and
// cannot be moved to another scope.
type WorkingError struct{ Scopes []string }

func (e *WorkingError) Error() string {
	n := "1 session"
	if len(e.Scopes) > 1 {
		n = fmt.Sprintf("%d sessions", len(e.Scopes))
	}
	return fmt.Sprintf("the project has working memory of %s, which cannot be moved to another project: %s", n,
		human.Quote(e.Scopes[0]))
}

// Unwrap returns varve.ErrConflict.
func (e *WorkingError) Unwrap() error { return varve.ErrConflict }

// Merge moves the memories and the notes of one project to another, or to the shared part if into is "". It moves
// nothing if the project has working memory (*WorkingError), or if both projects have a note at the same path
// (varve.ErrConflict). It makes several commits. If Merge is interrupted, the caller can call it again to complete the
// move.
func Merge(ctx context.Context, st *varve.Store, from, into string, o MergeOptions) (done Merged, err error) {
	if from == "" || from == into {
		return done, varve.ErrInvalid
	}
	if !o.LeaveWorking {
		scopes, err := workingOf(ctx, st, from)
		if err != nil {
			return done, err
		}
		if len(scopes) > 0 {
			return done, &WorkingError{scopes}
		}
	}
	if done.Notes, err = mergeNotes(ctx, st, from, into); err != nil {
		return done, err
	}
	done.Memories, err = mergeMemories(ctx, st, from, into)
	return done, err
}

// workingOf returns the scopes of working memory of a project.
func workingOf(ctx context.Context, st *varve.Store, project string) (scopes []string, err error) {
	for scope, err := range st.Working().Home().Scopes(ctx) {
		if err != nil {
			return nil, err
		}
		if first, _, _ := strings.Cut(scope.Project, "/"); first == project {
			scopes = append(scopes, scope.Key())
		}
	}
	slices.Sort(scopes)
	return scopes, nil
}

func mergeMemories(ctx context.Context, st *varve.Store, from, into string) (n int, err error) {
	var ids []string
	for m, err := range st.Memories(ctx) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err == nil && Of(&m) == from {
			ids = append(ids, m.ID)
		}
	}
	target := New(st, into, nil)
	for len(ids) > 0 {
		some := ids[:min(len(ids), mergedAtOnce)]
		done := 0
		err := st.Transact(ctx, func(tx *varve.Tx) error {
			done = 0
			for _, id := range some {
				m, err := tx.Get(id)
				if errors.Is(err, varve.ErrNotFound) || err == nil && Of(&m) != from {
					continue
				}
				if err == nil {
					target.Place(&m, into == "")
					_, err = tx.Put(m)
				}
				if err != nil {
					return err
				}
				done++
			}
			return nil
		})
		if err != nil {
			return n, err
		}
		n, ids = n+done, ids[len(some):]
	}
	return n, nil
}
