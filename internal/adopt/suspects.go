package adopt

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/engine"
)

// Suspects yields names in a folder, as arguments for Look: the names of files that differ from the index in size or
// time, of files that the index does not list, and of files that do not exist. For each file that agrees with the
// index, it yields "", so that the loop's body can pause to limit the load; a pause costs other goroutines nothing.
// Suspects reads no document, and checks each file once.
func (f *Files) Suspects(ctx context.Context, folder string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		k, ed := f.folder(folder), f.ed
		if k == nil {
			return
		}
		if err := ed.engine.CatchUp(ctx); err != nil {
			yield("", err)
			return
		}
		names, err := k.Names()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield("", err)
			return
		}
		slices.Sort(names)
		known := make([]bool, len(names))
		for l, err := range ed.engine.Lines(ctx, k, engine.Filters{Expired: true}) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield("", err)
				return
			}
			name := k.FileName(l.ID)
			if i, ok := slices.BinarySearch(names, name); ok {
				known[i] = true
			}
			info, err := k.Stat(name)
			if err == nil && engine.Matches(&l.Line, info) {
				ed.moves.saw(k, l.ID, info)
				if !yield("", nil) {
					return
				}
				continue
			}
			if !yield(name, nil) {
				return
			}
		}
		for i, name := range names {
			if !known[i] && k.IsDocument(name) && !ed.Ignores(k, name) && ed.unfit(k, name) == "" && !yield(name, nil) {
				return
			}
		}
	}
}

// Missing returns the names of the documents in the folders dirs, and below them, whose files are missing.
func (f *Files) Missing(ctx context.Context, folder string, dirs []string) (names []string, err error) {
	k, ed := f.folder(folder), f.ed
	if k == nil || !k.Tree() {
		return nil, nil
	}
	if err := ed.engine.CatchUp(ctx); err != nil {
		return nil, err
	}
	for l, err := range ed.engine.Lines(ctx, k, engine.Filters{Expired: true}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return names, err
		}
		name := k.FileName(l.ID)
		if !slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") }) {
			continue
		}
		if _, err := k.Stat(name); errors.Is(err, fs.ErrNotExist) {
			names = append(names, name)
		}
	}
	return names, nil
}
