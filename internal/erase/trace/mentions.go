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

// The ways in which a file can mention a purged document.
const (
	mentionsContent = "contains purged text"
	mentionsName    = "is named after the purged id"
	mentionsID      = "contains the purged id"
	mentionsUnknown = "was not searched: larger than 64 MiB"

	pieceSize   = 24 // minimum size of a piece of a content in bytes, enough not to occur by chance
	pieceLetter = 8  // minimum number of different bytes in a piece, so that it does not occur by chance
	pieces      = 8  // number of pieces per content
	// Approximate limit for the pieces of all contents together. If a purge has very many documents, fewer pieces of
	// each are recorded, so that the pieces fit into memory.
	piecesMost = 1 << 18
)

// Learn records pieces of a document's content. Files that contain such a piece are then recognised as copies.
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

// LearnDocument records the hash and pieces of a document of an opaque kind. Files with the same bytes are then
// recognised as copies, wherever they are.
func (t *Set) LearnDocument(doc []byte) {
	if len(doc) > 0 {
		t.documents[sha256.Sum256(doc)] = true
	}
	t.Learn(string(doc))
}

// Mentioned returns in what way a file mentions one of the documents of the set, as a phrase such as "contains the
// purged id". It returns "" if the file mentions none. name is the file's name, and b its content.
func (t *Set) Mentioned(name string, b []byte) string {
	switch {
	case t.content.foundIn(b):
		return mentionsContent
	case t.kind.Tree(): // the last element of a path proves nothing
	case t.Named(name), t.names.begin(name):
		return mentionsName
	}
	if t.members.foundIn(b) || t.plain.foundIn(b) || t.inPath(b, "/") {
		return mentionsID
	}
	return ""
}

// Strangers returns the files in a store's folder that users have put there and that may mention a purged document. It
// omits files of the log and the index, files that the purge itself searches, and files directly in memories/. It does
// not follow links, and does not search .git.
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
			paths = append(paths, rel) // the code that reads the file reports the error
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

// foldersIn calls visit with the path of each subfolder of one of the store's folders: memories if name is "memories",
// or backups if name is "backups". In backups, it also calls visit for files. It omits the backups that the store
// itself has made.
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
				continue // listed as a whole
			}
		} else if kind.Memories.IsDocument(n) {
			continue // avoids a stat of each of perhaps a million memories
		} else if info, err := fsys.Stat(filepath.Join(dir, rel)); err != nil || !info.Mode.IsDir() {
			continue
		}
		if err := visit(rel); err != nil {
			return err
		}
	}
	return nil
}

// MentionedIn searches the files at paths, relative to the store's folder dir, for mentions of the documents of the
// set.
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
