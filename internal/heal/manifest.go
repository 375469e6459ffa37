package heal

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
	manifestHead = "repair-"
	manifestTail = ".undo.jsonl"
)

// change is a line of a manifest; see the package comment.
type change struct {
	N    int         `json:"n,omitempty"`
	Do   repair.Verb `json:"do,omitempty"`
	Path string      `json:"path,omitempty"`

	Before *stands `json:"before,omitempty"` // what stood at path; absent: nothing
	After  *stands `json:"after,omitempty"`  // what the repair put there; absent: nothing
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
	Ends    []change   `json:"ends,omitempty"` // of older programs: the lines with end in one
}

// stands is a file as it was.
type stands struct {
	Kept  string    `json:"kept,omitempty"` // where its bytes are, in the store; "" where After has no need of it
	Size  int64     `json:"size"`
	Mtime time.Time `json:"mtime"`
	Hash  string    `json:"hash,omitempty"` // "" for what is no regular file
}

// manifest is the file that a repair writes down everything in before it does
// it: one JSON object a line, each durable before the change is begun.
type manifest struct {
	f    vfs.File
	id   string
	mark *mark // nil: it cannot be undone
	at   int64
	n    int
	any  []string
	ends map[string]bool // what is in any
	logs bool
}

func manifestPath(id string) string { return "quarantine/" + manifestHead + id + manifestTail }

func (m *manifest) write(list ...change) error {
	b, err := encodeLines(nil, m.mark, m.id, list...)
	if err != nil {
		return err
	}
	if _, err := m.f.WriteAt(b, m.at); err != nil {
		return fmt.Errorf("writing %s: %w", manifestPath(m.id), err)
	}
	m.at += int64(len(b))
	return m.f.Sync()
}

// intend writes down changes that are going to be made, and numbers them.
func (m *manifest) intend(list ...change) error {
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
	return m.write(list...)
}

// became writes down which version the last change led to.
func (m *manifest) became(version uint64) error { return m.write(change{N: m.n, Now: version}) }

// Repairs lists the ids of the repairs that a store's folder has manifests of, the
// newest last by their names, whoever wrote them.
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
		mid, ok1 := strings.CutPrefix(name, manifestHead)
		mid, ok2 := strings.CutSuffix(mid, manifestTail)
		if ok1 && ok2 {
			ids = append(ids, mid)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// more writes lines behind a manifest: that an undo of a repair begins, with what it has found
// out that a repair that was cut has not written down; that the store has moved.
func (m *mark) more(fsys vfs.FS, dir, id string, list ...change) error {
	lines, err := encodeLines([]byte("\n"), m, id, list...) // its last line may have been cut
	if err != nil {
		return err
	}
	name, err := places.Enter(fsys, dir, manifestPath(id))
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
func encodeLines(dst []byte, m *mark, id string, list ...change) ([]byte, error) {
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

// standsAt looks at what stands at a path in the store; nil: nothing. What is larger than
// any file of its kind is not read, and has no hash.
func standsAt(fsys vfs.FS, name string) (*stands, error) {
	info, err := fsys.Stat(name)
	if places.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &stands{Size: info.Size, Mtime: info.Mtime.UTC()}
	if !info.Mode.IsRegular() || info.Size > docfile.HashMost {
		return s, nil
	}
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, info.Size)); err != nil {
		return s, nil // the system refuses to read it
	}
	s.Hash = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return s, nil
}

// begin makes the manifest. Where there is no key to mark it with the repair goes on:
// what it replaces is kept as ever, and noUndo says why Undo will refuse.
func (r *changer) begin(k *keys) (noUndo, err error) {
	var salt [3]byte
	if err := k.random(salt[:]); err != nil {
		return nil, err
	}
	now := r.clock().UTC()
	began := strings.Replace(now.Format("20060102-150405.000000"), ".", "-", 1) // two in a second have an order
	m := &manifest{ends: map[string]bool{}, id: began + "-" + hex.EncodeToString(salt[:])}
	if err := r.layout.Folder("quarantine").Make(); err != nil {
		return nil, err
	}
	first := change{Began: m.id, When: &now}
	if m.mark, err = k.markOf(r.dir, true); err != nil {
		noUndo = fmt.Errorf("%s is not marked as this copy's: %w", manifestPath(m.id), err)
	} else {
		first.Folder = m.mark.folder
	}
	if m.f, err = r.fs.OpenFile(r.path(manifestPath(m.id)), os.O_RDWR|os.O_CREATE|os.O_EXCL, r.mode); err != nil {
		return noUndo, fmt.Errorf("making %s: %w", manifestPath(m.id), err)
	}
	r.m = m
	if err := m.write(first); err != nil {
		return noUndo, err
	}
	return noUndo, r.fs.SyncDir(r.path("quarantine"))
}

// end writes down how everything stands after the repair: a line for each place, so that
// a purge can take one away, and one that all of it was done.
func (r *changer) end() error {
	var lines []change
	for _, rel := range r.m.any {
		name, err := places.Enter(r.fs, r.dir, rel)
		var s *stands
		if err == nil {
			s, err = standsAt(r.fs, name)
		}
		if err != nil && !places.Gone(err) {
			return err
		}
		lines = append(lines, change{End: true, Path: rel, After: s})
	}
	last := change{Ended: true}
	if m, err := wal.ReadCheckpoint(r.fs, r.dir); err == nil {
		last.Durable = m.Attested.LSN
	}
	return r.m.write(append(lines, last)...)
}
