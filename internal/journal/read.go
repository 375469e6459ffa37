package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

const (
	sumHead = `,"mac":"`
	sumTail = `"}`
	sumSize = 64 // hex digits

	lineMost  = 64 << 10 // bytes of a line: two names and an id, each byte escaped, leave room
	linesMost = 4 << 20
	LookMost  = 1000 // manifests of others that are looked at for one that this copy wrote
)

// Foreign is the error of a manifest that is not obeyed.
func Foreign(id, format string, args ...any) *repair.UndoForeign {
	return &repair.UndoForeign{ID: id, Path: Path(id), Reason: fmt.Sprintf(format, args...)}
}

// Read reads the lines of a manifest that this copy wrote, a *UndoForeign when it
// did not, or when a line was changed since: undoing the others would leave out what it says. A line
// that was cut, or torn with others of one write, is left out: what it is about had not begun.
func Read(fsys vfs.FS, dir, id string, m *Mark) ([]Change, error) {
	if err := keptAt(Path(id)); err != nil {
		return nil, Foreign(id, "%v", err)
	}
	name, err := places.Enter(fsys, dir, Path(id))
	if err != nil {
		return nil, err
	}
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		if info, serr := fsys.Stat(name); serr == nil && !info.Mode.IsRegular() {
			return nil, Foreign(id, "it is no file (%s)", info.Mode)
		}
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode.IsRegular():
		return nil, Foreign(id, "it is no file (%s)", info.Mode)
	case info.Size > places.ManifestMost:
		return nil, Foreign(id, "it has %d bytes (limit: %d)", info.Size, int64(places.ManifestMost))
	}
	r := &manifestReader{id: id, mark: m}
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, info.Size), lineMost)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		for long := err == bufio.ErrBufferFull; long; long = err == bufio.ErrBufferFull {
			line = []byte{0} // of ours none is so long
			_, err = in.ReadSlice('\n')
		}
		if err == io.EOF {
			break // cut, or the end
		}
		if err != nil {
			return nil, err
		}
		if n > linesMost {
			return nil, Foreign(id, "it has more than %d lines", linesMost)
		}
		if err := r.line(n, line); err != nil {
			return nil, err
		}
	}
	if r.list == nil {
		return nil, Foreign(id, "nothing is in it")
	}
	if r.changed != 0 {
		return nil, Foreign(id, "line %d was changed since it was written, and undo would omit what it said", r.changed)
	}
	if r.folder != m.Folder {
		return nil, Foreign(id, "it was written for another copy of the store: its folder had the number %d, and this one has %d", r.folder, m.Folder)
	}
	return r.list, nil
}

type manifestReader struct {
	id     string
	mark   *Mark
	folder uint64 // that the store is in, as far as was read
	list   []Change
	at     map[int]int // by number: where a change is in list

	bad, changed int // the first line without its sum; the first that was changed since it was written
}

// line takes one in, which ends in a line feed.
func (r *manifestReader) line(n int, line []byte) error {
	body, sum, ok := unsealed(bytes.TrimSuffix(line, []byte("\n")))
	if ok = ok && hmac.Equal([]byte(r.mark.sum(r.id, body)), sum); !ok {
		switch {
		case n > 1:
			if r.bad == 0 && len(bytes.TrimSpace(line)) > 0 {
				r.bad = n
			}
			if sum != nil && json.Valid(body) && r.changed == 0 {
				r.changed = n // whole, and not as it was written
			}
			return nil
		case sum == nil:
			return Foreign(r.id, "it has no checksum of this copy of the store: it came with a clone or an archive, or an older program wrote it")
		}
		return Foreign(r.id, "its checksum is not of this user: it was written by another user, on another machine, under another name, or changed since")
	}
	var c Change
	if err := json.Unmarshal(body, &c); err != nil {
		return Foreign(r.id, "line %d: %v", n, err)
	}
	switch {
	case n == 1:
		if c.Began != r.id || c.Folder == 0 {
			return Foreign(r.id, "its first line is that of repair %s", human.Quote(c.Began))
		}
		r.folder, r.at = c.Folder, map[int]int{}
	case c.Moved != 0:
		r.folder = c.Moved
	case c.Now != 0 && c.Do == "":
		if i, ok := r.at[c.N]; ok {
			r.list[i].Was, r.list[i].Now = cmp.Or(c.Was, r.list[i].Was), c.Now
		}
		return nil
	case c.Do != "":
		if _, twice := r.at[c.N]; twice {
			return nil
		}
		if err := c.check(); err != nil {
			return Foreign(r.id, "line %d names %s: %v", n, human.Quote(c.Path), err)
		}
		r.at[c.N] = len(r.list)
	}
	if c.Ended && r.changed == 0 {
		r.changed = r.bad // the repair went on: nothing was torn
	}
	r.list = append(r.list, c)
	return nil
}

// check says why no repair can have made a change. A name that a repair met, and that
// Undo gives to nothing, is left then: see first.
func (c *Change) check() error {
	if err := placed(c.Path); err != nil && !errors.Is(err, places.ErrUnlikely) {
		return err
	}
	if k := kind.At(c.Path); c.ID != "" && (k == nil || c.Path != k.File(c.ID)) {
		return fmt.Errorf("not the file of id %s", human.Quote(c.ID))
	}
	if c.Before != nil && c.Before.Kept != "" {
		if err := keptAt(c.Before.Kept); err != nil && !errors.Is(err, places.ErrUnlikely) {
			return fmt.Errorf("its bytes are said to be at %s: %w", human.Quote(c.Before.Kept), err)
		}
	}
	if c.Before != nil && c.Before.Size < 0 {
		return errors.New("negative size")
	}
	return nil
}

// unsealed takes a line apart; sum is nil where it has none.
func unsealed(line []byte) (body, sum []byte, ok bool) {
	at := len(line) - len(sumHead) - sumSize - len(sumTail)
	if at < 1 || !bytes.HasSuffix(line, []byte(sumTail)) || !bytes.HasPrefix(line[at:], []byte(sumHead)) {
		return nil, nil, false
	}
	return append(line[:at:at], '}'), line[at+len(sumHead) : at+len(sumHead)+sumSize], true
}

// Undone are those that repairs gave and undos took back, by memory: of what this
// copy wrote.
func Undone(o *Keys, dir string) (map[string][]uint64, error) {
	all := map[string][]uint64{}
	m, err := o.Mark(dir, false)
	var nokey *NoKey
	if errors.As(err, &nokey) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	ids, err := Repairs(o.FS, dir)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		list, err := Read(o.FS, dir, id, m)
		var foreign *repair.UndoForeign
		if errors.As(err, &foreign) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(c Change) bool { return c.Undone }) {
			continue
		}
		for _, c := range list {
			if c.ID != "" && c.Now != 0 {
				all[c.ID] = append(all[c.ID], c.Now)
			}
		}
	}
	return all, nil
}

// Unlikely says why Undo puts nothing back in a place.
func (c *Change) Unlikely() error {
	err := placed(c.Path)
	if err == nil && c.Before != nil && c.Before.Kept != "" {
		err = keptAt(c.Before.Kept)
	}
	return err
}
