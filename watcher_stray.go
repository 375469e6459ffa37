package varve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

// stray is a file in which a document stands that has another one, by its id.
type stray struct {
	in   *kind // in whose folder it lies
	name string
}

func (s *stray) path() string { return s.in.Name() + "/" + s.name }

// strays are the documents among ids that stand in a file which is not theirs: somebody
// has renamed or copied it, within its folder or into the other one. Nothing tells of that
// by the name alone, so all files are looked at, and read are those that are not what the
// index has; what editors leave beside a file (x.json~) counts for nothing.
func (f *Files) strays(ctx context.Context, k *kind, ids []string) (map[string][]*stray, error) {
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	found := map[string][]*stray{}
	for _, in := range f.st.engine.kinds.all {
		for name, err := range f.Suspects(ctx, in.Name()) {
			switch {
			case err != nil:
				return nil, err
			case name == "" || !documentName(name):
				continue
			}
			s := &stray{in, name}
			_, p, err := s.read(k)
			switch {
			case err == nil:
				if wanted[p.id] && (in != k || docfile.FileName(p.id) != name) {
					found[p.id] = append(found[p.id], s)
				}
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, errs.ErrInvalid), errors.Is(err, errs.ErrCorrupt), errors.Is(err, errs.ErrTooLarge), vfs.IsPermission(err):
			default: // not read is not absent
				return nil, fmt.Errorf("looking for what was renamed: %s: %w", s.path(), err)
			}
		}
	}
	return found, nil
}

// read reads the document, of a kind, whatever its id.
func (s *stray) read(k *kind) (data []byte, p parsed, err error) {
	data, _, err = s.in.Read(s.name, places.StoredMost)
	if err == nil {
		p, err = k.parse(data, "")
	}
	return data, p, err
}

// renamed puts a document back whose file somebody has given another name, or copied and
// then deleted: that is not its deletion. Where neither log nor archive have the version,
// one of the files with another name does, or is an edit of it, which is taken over then;
// not an older copy. They stay as they are, and are told as every one that is in the wrong
// place. flush.lock is held.
func (st *Store) renamed(ctx context.Context, k *kind, id string, was version, strays []*stray) (*verdict, error) {
	is := &verdict{id: id, name: docfile.FileName(id)}
	var err error
	if is.version, err = st.kept(ctx, k, id, was.lsn); err == nil {
		is.back = true
		return is, nil
	}
	lost := err
	var edit *parsed
	var edited []byte
	for _, s := range strays {
		data, p, rerr := s.read(k)
		if rerr != nil || p.id != id {
			continue
		}
		if sha256.Sum256(data) == was.line.ContentHash {
			is.version, is.back = was, true
			is.version.doc = data
			return is, nil
		}
		if _, perr := k.parseEdit(data, id); perr != nil {
			continue
		}
		if p.updated.Before(was.line.UpdatedAt.Truncate(time.Microsecond)) {
			lost = fmt.Errorf("%w; %s is an older version of it, or an edit of one, which memctl repair takes", err, s.path())
			continue
		}
		if edit == nil || p.updated.After(*edit.updated) {
			edit, edited = &p, data
		}
	}
	if edit == nil {
		return nil, lost
	}
	is.adopt, err = st.adoption(ctx, k, edit, edited, was)
	return is, err
}
