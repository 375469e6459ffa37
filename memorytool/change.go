package memorytool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
)

// snippetLines is the number of lines that an answer shows before and after an edit.
const snippetLines = 2

func (t *Tool) create(ctx context.Context, args *input) (string, error) {
	p, err := t.place(*args.Path)
	if err != nil {
		return "", err
	}
	exists := &refused{text: errorPrefix + "File " + p.shown + " already exists"}
	if p.root {
		return "", exists
	}
	var conds []varve.Cond
	if !t.options.Overwrite {
		conds = append(conds, varve.IfAbsent())
	}
	if _, err = t.notes.Write(ctx, p.path, []byte(*args.FileText), conds...); err != nil {
		var conflict *varve.ConflictError
		if errors.As(err, &conflict) || t.isThere(ctx, p.path) {
			exists.cause, err = err, exists
		}
		return "", err
	}
	return "File created successfully at: " + p.shown, nil
}

// isThere reports whether a note, or a folder with notes, is at a path.
func (t *Tool) isThere(ctx context.Context, path string) bool {
	if _, err := t.notes.Read(ctx, path); err == nil {
		return true
	}
	for _, err := range t.notes.List(ctx, path, 1) {
		return err == nil
	}
	return false
}

// change replaces the content of a file by the result of f for the current content. If another process writes the file
// in the meantime, change calls f again with the new content. If there is no file, change answers with missing.
func (t *Tool) change(ctx context.Context, p place, missing string, f func(old []byte) ([]byte, error)) error {
	absent := &refused{text: missing}
	if p.root {
		return absent
	}
	for {
		n, err := t.notes.Read(ctx, p.path)
		if errors.Is(err, varve.ErrNotFound) {
			absent.cause = err
			return absent
		}
		if err != nil {
			return err
		}
		data, err := f(n.Content)
		if err != nil {
			return err
		}
		// Each conflict is the progress of another writer.
		if _, err = t.notes.Write(ctx, p.path, data, varve.IfVersion(n.Version)); !errors.Is(err, varve.ErrConflict) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (t *Tool) replace(ctx context.Context, args *input) (string, error) {
	p, err := t.place(*args.Path)
	if err != nil {
		return "", err
	}
	from, to := *args.OldStr, ""
	if args.NewStr != nil {
		to = *args.NewStr
	}
	if from == "" {
		return "", &refused{text: errorPrefix + "Invalid `old_str` parameter: must not be empty"}
	}
	var data []byte
	at := 0
	err = t.change(ctx, p, errorPrefix+"The path "+p.shown+" does not exist. Please provide a valid path.",
		func(old []byte) ([]byte, error) {
			new, err := note.Replace(old, from, to)
			data, at = new, bytes.Index(old, []byte(from))
			return new, ambiguous(err, p, from)
		})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("The memory file has been edited. Here is the snippet showing the change (with line numbers):")
	first := 1 + bytes.Count(data[:at], []byte("\n"))
	last := first + strings.Count(to, "\n")
	numbered(&b, data, max(first-snippetLines, 1), last+snippetLines, t.options.ViewLimit)
	return b.String(), nil
}

// ambiguous returns the answer for an edit that failed because from, the old_str of the call, does not occur exactly
// once in the file. If err has another reason, ambiguous returns err.
func ambiguous(err error, p place, from string) error {
	var match *varve.MatchError
	switch {
	case !errors.As(err, &match):
		return err
	case match.Count == 0:
		return &refused{fmt.Sprintf("No replacement was performed, old_str `%s` did not appear verbatim in %s.", from,
			p.shown), err}
	}
	var list []string
	for _, n := range slices.Compact(match.Lines) {
		list = append(list, strconv.Itoa(n))
	}
	return &refused{fmt.Sprintf("No replacement was performed. Multiple occurrences of old_str `%s` in lines: %s. Please "+
		"ensure it is unique", from, strings.Join(list, ", ")), err}
}

func (t *Tool) insert(ctx context.Context, args *input) (string, error) {
	p, err := t.place(*args.Path)
	if err != nil {
		return "", err
	}
	line := int(*args.InsertLine)
	err = t.change(ctx, p, errorPrefix+"The path "+p.shown+" does not exist", func(old []byte) ([]byte, error) {
		if n := note.Lines(old); line < 0 || line > n {
			return nil, &refused{text: fmt.Sprintf("%sInvalid `insert_line` parameter: %d. It should be within the range of "+
				"lines of the file: [0, %d]", errorPrefix, line, n)}
		}
		return note.Insert(old, line, *args.InsertText)
	})
	if err != nil {
		return "", err
	}
	return "The file " + p.shown + " has been edited.", nil
}

func (t *Tool) remove(ctx context.Context, args *input) (string, error) {
	p, err := t.place(*args.Path)
	if err != nil {
		return "", err
	}
	if p.root {
		return "", &refused{text: "Cannot delete the /memories directory itself"}
	}
	if err = t.notes.Delete(ctx, p.path); errors.Is(err, varve.ErrNotFound) {
		_, err = t.notes.DeleteFolder(ctx, p.path)
	}
	if errors.Is(err, varve.ErrNotFound) {
		return "", &refused{errorPrefix + "The path " + p.shown + " does not exist", err}
	}
	if err != nil {
		return "", err
	}
	return "Successfully deleted " + p.shown, nil
}

func (t *Tool) rename(ctx context.Context, args *input) (string, error) {
	from, err := t.place(*args.OldPath)
	if err != nil {
		return "", err
	}
	to, err := t.place(*args.NewPath)
	if err != nil {
		return "", err
	}
	if from.root {
		return "", &refused{text: "Cannot rename the /memories directory itself"}
	}
	exists := &refused{text: errorPrefix + "The destination " + to.shown + " already exists"}
	if to.root {
		return "", exists
	}
	if from.path == to.path {
		if t.isThere(ctx, from.path) {
			return "", exists
		}
		return "", missing(from, nil)
	}
	_, err = t.notes.Rename(ctx, from.path, to.path)
	var conflict *varve.ConflictError
	switch {
	case err == nil:
		return "Successfully renamed " + from.shown + " to " + to.shown, nil
	case errors.Is(err, varve.ErrNotFound):
		return "", missing(from, err)
	case errors.As(err, &conflict), t.isThere(ctx, to.path):
		exists.cause = err
		return "", exists
	}
	return "", err
}

func missing(p place, err error) *refused {
	return &refused{errorPrefix + "The path " + p.shown + " does not exist", err}
}
