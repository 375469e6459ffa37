package trace

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// What a file may have of a memory.
const (
	mentionsContent = "has bytes of what it said"
	mentionsName    = "is called after it"
	mentionsID      = "names it"
	mentionsUnknown = "was not looked into: it is larger than 64 MiB"

	pieceSize   = 24 // of a content, long enough not to be met by chance
	pieceLetter = 8  // different bytes that it must have for that
	pieces      = 8  // of one content
	// pieces of all contents, about: of very many documents fewer of each are learned, so that they fit into memory
	piecesMost = 1 << 18
)

// Learn takes pieces of a content, by which a copy of it is known.
func (t *Set) Learn(content string) {
	step := max(pieceSize, (len(content)-pieceSize)/max(1, t.learns-1))
	for at := 0; at+pieceSize <= len(content); at += step {
		piece := content[at : at+pieceSize]
		seen := map[byte]bool{}
		for _, c := range []byte(piece) {
			seen[c] = true
		}
		if len(seen) < pieceLetter {
			continue
		}
		t.content.add([]byte(piece))
		if quoted := jsondoc.AppendEscaped(nil, piece); string(quoted) != piece {
			t.content.add(quoted)
		}
	}
}

// LearnDocument takes the bytes of a document of an opaque kind, by which a copy of it is known whose place nothing
// says.
func (t *Set) LearnDocument(doc []byte) {
	if len(doc) > 0 {
		t.documents[sha256.Sum256(doc)] = true
	}
	t.Learn(string(doc))
}

// Mentioned says what a file has of one of the memories; "" when it has nothing.
func (t *Set) Mentioned(name string, b []byte) string {
	switch {
	case t.content.in(b):
		return mentionsContent
	case t.kind.Tree(): // a name that ends as a path does says nothing
	case t.Named(name), t.names.begin(name):
		return mentionsName
	}
	if t.members.in(b) || t.plain.in(b) || t.inPath(b, "/") {
		return mentionsID
	}
	return ""
}

// Strangers are the files in a store's folder that are neither the log's, the index's
// nor what purge itself goes through, nor lie in memories/ itself: what somebody
// has put there. Links are not followed; .git is not looked into.
func Strangers(ctx context.Context, fsys vfs.FS, dir string) (paths []string, err error) {
	var walk func(rel string, depth int) error
	walk = func(rel string, depth int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := fsys.Stat(filepath.Join(dir, rel))
		switch {
		case places.Gone(err):
			return nil
		case err != nil || info.Mode.IsRegular():
			paths = append(paths, rel) // the code that looks into it says what is in the way
			return nil
		case !info.Mode.IsDir() || depth == 0 || filepath.Base(rel) == ".git":
			return nil
		}
		names, err := places.Names(fsys, filepath.Join(dir, rel))
		if err != nil {
			paths = append(paths, rel)
			return nil
		}
		for _, name := range names {
			if err := walk(filepath.Join(rel, name), depth-1); err != nil {
				return err
			}
		}
		return nil
	}
	names, err := places.Names(fsys, dir)
	for _, name := range names {
		if err != nil {
			break
		}
		switch {
		case name != kind.Memories.Folder && places.IsDocuments(name), name == places.Views,
			!places.IsTopFile(name) && !places.IsTopFolder(name):
			err = walk(name, vfs.Deepest)
		case name == kind.Memories.Folder, name == "backups":
			err = foldersIn(fsys, dir, name, func(rel string) error { return walk(rel, vfs.Deepest) })
		}
	}
	return paths, err
}

// foldersIn visits the folders in memories/; in backups/ all but what is the store's.
func foldersIn(fsys vfs.FS, dir, name string, visit func(string) error) error {
	names, err := places.Names(fsys, filepath.Join(dir, name))
	if err != nil {
		return err
	}
	for _, n := range names {
		rel := filepath.Join(name, n)
		if name == "backups" {
			if strings.HasPrefix(n, "memory_index.") {
				continue
			}
			if _, err := fsys.Stat(filepath.Join(dir, rel, repair.BackupName)); err == nil {
				continue // named as a whole
			}
		} else if kind.Memories.IsDocument(n) {
			continue // of a million most are memories: not one look each
		} else if info, err := fsys.Stat(filepath.Join(dir, rel)); err != nil || !info.Mode.IsDir() {
			continue
		}
		if err := visit(rel); err != nil {
			return err
		}
	}
	return nil
}

// MentionedIn looks into files of a store's folder.
func (t *Set) MentionedIn(ctx context.Context, fsys vfs.FS, dir string,
	paths []string) (list []repair.Mention, err error) {
	for _, rel := range paths {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		how := ""
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, rel), places.MentionMost)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, errs.ErrTooLarge):
			how = mentionsUnknown
		case err != nil:
			how = "cannot be read: " + err.Error()
		default:
			how = t.Mentioned(filepath.Base(rel), b)
		}
		if how != "" {
			list = append(list, repair.Mention{Path: filepath.ToSlash(rel), How: how})
		}
	}
	return list, nil
}
