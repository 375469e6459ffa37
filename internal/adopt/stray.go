package adopt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// stray is a file that contains a document whose id belongs to another file.
type stray struct {
	in   *engine.Kind // folder that contains the file
	name string
}

func (s *stray) path() string { return s.in.Name() + "/" + s.name }

// strays returns, by id, the files that contain one of the documents ids but do not have the path of that document: a
// user has renamed or copied the document's file, within the folder or into another one. The names alone do not show
// which document a file contains, so strays checks all files, and reads those that differ from the index. It ignores
// backup files of editors (x.json~).
//
// A document of an opaque kind does not contain its id, so a file with another name is another document.
func (f *Files) strays(ctx context.Context, k *engine.Kind, ids []string) (map[string][]*stray, error) {
	if k.Opaque {
		return nil, nil
	}
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	found := map[string][]*stray{}
	for _, in := range f.ed.engine.Present() {
		for name, err := range f.Suspects(ctx, in.Name()) {
			switch {
			case err != nil:
				return nil, err
			case name == "" || !in.IsDocument(name):
				continue
			}
			s := &stray{in, name}
			_, p, err := s.read(k)
			switch {
			case err == nil:
				if wanted[p.ID] && (in != k || k.FileName(p.ID) != name) {
					found[p.ID] = append(found[p.ID], s)
				}
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, errs.ErrInvalid), errors.Is(err, errs.ErrCorrupt),
				errors.Is(err, errs.ErrTooLarge), vfs.IsPermission(err):
			default: // an unread file is not an absent one
				return nil, fmt.Errorf("looking for renamed files: %s: %w", s.path(), err)
			}
		}
	}
	return found, nil
}

// read reads and parses the document in the file, no matter which id it has.
func (s *stray) read(k *engine.Kind) (data []byte, p engine.Parsed, err error) {
	data, _, err = s.in.Read(s.name, places.StoredMost)
	if err == nil {
		p, err = k.Parse(data, "")
	}
	return data, p, err
}

// renamed returns the verdict about a document whose file a user has renamed, or copied and then deleted: that is not
// a deletion. old is the newest version of the document. strays are the files with other names that contain the id of
// the document.
//
// If the log or the archive has the version old, the document's file is restored from there. If not, it is restored
// from a stray with the same content. If there is no such stray, the stray with the latest edit of the version is
// adopted. An older copy is never adopted. The strays stay in place, and the store reports them like every misplaced
// file.
func (ed *Adopter) renamed(ctx context.Context, _ *wal.Held, k *engine.Kind, id string, old engine.Version,
	strays []*stray) (*Verdict, error) {
	is := &Verdict{ID: id, name: k.FileName(id)}
	var err error
	if is.Version, err = ed.versionFromLog(ctx, k, id, old.LSN); err == nil {
		is.back = true
		return is, nil
	}
	lost := err
	var edit *engine.Parsed
	var edited []byte
	for _, s := range strays {
		data, p, rerr := s.read(k)
		if rerr != nil || p.ID != id {
			continue
		}
		if sha256.Sum256(data) == old.Line.ContentHash {
			is.Version, is.back = old, true
			is.Version.Doc = data
			return is, nil
		}
		if _, perr := k.ParseEdit(data, id); perr != nil {
			continue
		}
		if p.Updated.Before(old.Line.UpdatedAt.Truncate(time.Microsecond)) {
			lost = fmt.Errorf("%w; %s is an older version, or an edit of one; memctl repair adopts that file",
				err, s.path())
			continue
		}
		if edit == nil || p.Updated.After(*edit.Updated) {
			edit, edited = &p, data
		}
	}
	if edit == nil {
		return nil, lost
	}
	is.Adopt, err = ed.adoption(ctx, k, edit, edited, time.Time{}, old)
	return is, err
}
