package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

const (
	Head = "repair-"
	Tail = ".undo.jsonl"
)

// Change is a line of a manifest; see the package comment.
type Change struct {
	N    int         `json:"n,omitempty"`
	Do   repair.Verb `json:"do,omitempty"`
	Path string      `json:"path,omitempty"`

	Before *Stands `json:"before,omitempty"` // what stood at path; absent: nothing
	After  *Stands `json:"after,omitempty"`  // what the repair put there; absent: nothing
	Any    bool    `json:"any,omitempty"`    // what stands there afterwards is known at the end only

	ID  string `json:"id,omitempty"`  // of a document whose newest version was changed in the log
	Was uint64 `json:"was,omitempty"` // its version before, 0: none
	Now uint64 `json:"now,omitempty"` // on a line of its own, once it is known, with was where others wrote meanwhile

	Began   string     `json:"repair,omitempty"` // the first line: the repair's id
	When    *time.Time `json:"when,omitempty"`
	Folder  uint64     `json:"folder,omitempty"` // the number of the store's folder; absent: it cannot be undone
	End     bool       `json:"end,omitempty"`    // before the last line: what stands at a path with any
	Ended   bool       `json:"ended,omitempty"`  // the last line
	Undone  bool       `json:"undone,omitempty"` // behind it: an undo has begun
	Moved   uint64     `json:"moved,omitempty"`  // behind it: the store is in the folder with this number since
	Durable uint64     `json:"durable,omitempty"`
	Ends    []Change   `json:"ends,omitempty"` // of older programs: the lines with end in one
}

// Stands is a file as it was.
type Stands struct {
	Kept  string    `json:"kept,omitempty"` // where its bytes are, in the store; "" where After has no need of it
	Size  int64     `json:"size"`
	Mtime time.Time `json:"mtime"`
	Hash  string    `json:"hash,omitempty"` // "" for what is not a regular file
}

// Manifest is the file that a repair writes down everything in before it does
// it: one JSON object a line, each durable before the change is begun.
type Manifest struct {
	f    vfs.File
	ID   string
	mark *Mark // nil: it cannot be undone
	at   int64
	n    int
	any  []string
	ends map[string]bool // what is in any
	logs bool
}

// Close lets the file go.
func (m *Manifest) Close() error { return m.f.Close() }

// Path is where the manifest of a repair is, in the store.
func Path(id string) string { return "quarantine/" + Head + id + Tail }

// Write adds lines, durably.
func (m *Manifest) Write(list ...Change) error {
	b, err := encodeLines(nil, m.mark, m.ID, list...)
	if err != nil {
		return err
	}
	if _, err := m.f.WriteAt(b, m.at); err != nil {
		return fmt.Errorf("writing %s: %w", Path(m.ID), err)
	}
	m.at += int64(len(b))
	return m.f.Sync()
}

// Intend writes down changes that are going to be made, and numbers them.
func (m *Manifest) Intend(list ...Change) error {
	for i := range list {
		c := &list[i]
		m.n++
		c.N = m.n
		if c.Any && !m.ends[c.Path] {
			m.ends[c.Path] = true
			m.any = append(m.any, c.Path)
		}
		m.logs = m.logs || c.ID != ""
	}
	return m.Write(list...)
}

// Became writes down which version the last change led to.
func (m *Manifest) Became(version uint64) error { return m.Write(Change{N: m.n, Now: version}) }

// Repairs lists the ids of the repairs that a store's folder has manifests of, the
// newest last by their names, no matter who wrote them.
func Repairs(fsys vfs.FS, dir string) ([]string, error) {
	names, err := fsys.ReadDir(filepath.Join(dir, "quarantine"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, name := range names {
		mid, ok1 := strings.CutPrefix(name, Head)
		mid, ok2 := strings.CutSuffix(mid, Tail)
		if ok1 && ok2 {
			ids = append(ids, mid)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Append writes lines behind a manifest: that an undo of a repair begins, with what it has found
// out that a repair that was cut has not written down; that the store has moved.
func (m *Mark) Append(fsys vfs.FS, dir, id string, list ...Change) error {
	lines, err := encodeLines([]byte("\n"), m, id, list...) // its last line may have been cut
	if err != nil {
		return err
	}
	name, err := places.Enter(fsys, dir, Path(id))
	if err != nil {
		return err
	}
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(lines, info.Size)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// encodeLines appends lines, each with its sum.
func encodeLines(dst []byte, m *Mark, id string, list ...Change) ([]byte, error) {
	for _, c := range list {
		line, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		dst = append(dst, line...)
		if m != nil {
			dst = append(dst[:len(dst)-1], sumHead+m.sum(id, line)+sumTail...)
		}
		dst = append(dst, '\n')
	}
	return dst, nil
}

// StandsAt looks at what stands at a path in the store; nil: nothing. What is larger than
// any file of its kind, or sparse, is not read, and has no hash.
func StandsAt(fsys vfs.FS, name string) (*Stands, error) {
	info, err := fsys.Stat(name)
	if places.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &Stands{Size: info.Size, Mtime: info.Mtime.UTC()}
	if !info.Mode.IsRegular() || info.Size > docfile.HashMost {
		return s, nil
	}
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if vfs.Sparse(f, info.Size) {
		return s, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, info.Size)); err != nil {
		return s, nil // the system refuses to read it
	}
	s.Hash = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return s, nil
}

// Begin makes the manifest. Where there is no key to mark it with the repair goes on:
// what it replaces is kept as ever, and noUndo says why Undo will refuse.
func (r *Changer) Begin(k *Keys) (noUndo, err error) {
	var salt [3]byte
	if err := k.Random(salt[:]); err != nil {
		return nil, err
	}
	now := r.clock().UTC()
	began := strings.Replace(now.Format("20060102-150405.000000"), ".", "-", 1) // two in a second have an order
	m := &Manifest{ends: map[string]bool{}, ID: began + "-" + hex.EncodeToString(salt[:])}
	if err := r.layout.Folder("quarantine").Make(); err != nil {
		return nil, err
	}
	first := Change{Began: m.ID, When: &now}
	if m.mark, err = k.Mark(r.Dir, true); err != nil {
		noUndo = fmt.Errorf("%s is not marked as this copy's: %w", Path(m.ID), err)
	} else {
		first.Folder = m.mark.Folder
	}
	if m.f, err = r.fs.OpenFile(r.Path(Path(m.ID)), os.O_RDWR|os.O_CREATE|os.O_EXCL, r.mode); err != nil {
		return noUndo, fmt.Errorf("making %s: %w", Path(m.ID), err)
	}
	r.Manifest = m
	if err := m.Write(first); err != nil {
		return noUndo, err
	}
	return noUndo, r.fs.SyncDir(r.Path("quarantine"))
}

// End writes down how everything stands after the repair: a line for each place, so that
// a purge can take one away, and one that all of it was done.
func (r *Changer) End() error {
	var lines []Change
	for _, rel := range r.Manifest.any {
		name, err := places.Enter(r.fs, r.Dir, rel)
		var s *Stands
		if err == nil {
			s, err = StandsAt(r.fs, name)
		}
		if err != nil && !places.Gone(err) {
			return err
		}
		lines = append(lines, Change{End: true, Path: rel, After: s})
	}
	last := Change{Ended: true}
	if m, err := wal.ReadCheckpoint(r.fs, r.Dir); err == nil {
		last.Durable = m.Attested.LSN
	}
	return r.Manifest.Write(append(lines, last)...)
}
