package project

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
)

// NotesFolder is the folder of notes that has a subfolder for each project, named by the project's id. Notes outside of
// NotesFolder are in the shared part.
const NotesFolder = "projects"

// NotesOf returns the folder of the notes of a project, or "" for the shared part.
func NotesOf(project string) string {
	if project == "" {
		return ""
	}
	return NotesFolder + "/" + project
}

// seesNote reports whether the note at a path is in the view. It ignores case, because some file systems treat names
// that differ only in case as the same folder.
func (v *View) seesNote(path string) bool {
	first, rest, deeper := strings.Cut(path, "/")
	if !deeper || !strings.EqualFold(first, NotesFolder) {
		return true
	}
	of, _, _ := strings.Cut(rest, "/")
	return v.project != "" && of == v.project
}

// mergeNotes moves the notes of one project to another, or to the shared part if into is "", and returns the number of
// moved notes. It moves no note if a note exists at one of the new paths.
func mergeNotes(ctx context.Context, st *varve.Store, from, into string) (n int, err error) {
	source, target := NotesOf(from)+"/", ""
	if into != "" {
		target = NotesOf(into) + "/"
	}
	var paths []string
	for e, err := range st.Notes().List(ctx, NotesOf(from), 0) {
		if err != nil {
			if errors.Is(err, varve.ErrNotFound) {
				break
			}
			return 0, err
		}
		if !e.Folder {
			paths = append(paths, strings.TrimPrefix(e.Path, source))
		}
	}
	for _, p := range paths {
		if first, _, _ := strings.Cut(p, "/"); into == "" && strings.EqualFold(first, NotesFolder) {
			return 0, fmt.Errorf("the note %s cannot be moved to the shared part, in which the folder projects/ is "+
				"reserved: %w → rename the note with memctl note mv, and merge again", human.Quote(p),
				varve.ErrConflict)
		}
		if _, err := st.Notes().Read(ctx, target+p); err == nil {
			return 0, fmt.Errorf("both projects have a note %s: %w → rename one of them with memctl note mv, and merge again",
				human.Quote(p), varve.ErrConflict)
		} else if !errors.Is(err, varve.ErrNotFound) {
			return 0, err
		}
	}
	for _, p := range paths {
		if _, err := st.Notes().Rename(ctx, source+p, target+p); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
