package repair

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

const (
	manifestHead = "repair-"
	manifestTail = ".undo.jsonl"
	manifestMost = 1 << 30
)

// change is a line of a manifest; see the package comment.
type change struct {
	N    int    `json:"n,omitempty"`
	Do   Verb   `json:"do,omitempty"`
	Path string `json:"path,omitempty"`

	Before *stands `json:"before,omitempty"` // what stood at path; absent: nothing
	After  *stands `json:"after,omitempty"`  // what the repair put there; absent: nothing
	Any    bool    `json:"any,omitempty"`    // what stands there afterwards is known at the end only

	ID  string `json:"id,omitempty"`  // of a document whose newest version was changed in the log
	Was uint64 `json:"was,omitempty"` // its version before, 0: none
	Now uint64 `json:"now,omitempty"` // on a line of its own, once it is known, with was where others wrote meanwhile

	Began   string     `json:"repair,omitempty"` // the first line: the repair's id
	When    *time.Time `json:"when,omitempty"`
	Ended   bool       `json:"ended,omitempty"`  // the last line
	Undone  bool       `json:"undone,omitempty"` // behind it: an undo has begun
	Durable uint64     `json:"durable,omitempty"`
	Ends    []change   `json:"ends,omitempty"` // what stands at the paths with any
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
	at   int64
	n    int
	any  []string
	ends map[string]bool // what is in any
	logs bool
}

func manifestPath(id string) string { return "quarantine/" + manifestHead + id + manifestTail }

// begin makes the manifest.
func (r *repairer) begin() error {
	var salt [3]byte
	if err := r.o.Random(salt[:]); err != nil {
		return err
	}
	now := r.o.Clock().UTC()
	m := &manifest{ends: map[string]bool{}, id: now.Format("20060102-150405-") + hex.EncodeToString(salt[:])}
	if err := vfs.MkdirAll(r.o.FS, r.path("quarantine"), r.folderMode()); err != nil {
		return err
	}
	var err error
	if m.f, err = r.o.FS.OpenFile(r.path(manifestPath(m.id)), os.O_RDWR|os.O_CREATE|os.O_EXCL, r.o.fileMode()); err != nil {
		return fmt.Errorf("making %s: %w", manifestPath(m.id), err)
	}
	r.m = m
	if err := m.write(change{Began: m.id, When: &now}); err != nil {
		return err
	}
	return r.o.FS.SyncDir(r.path("quarantine"))
}

func (m *manifest) write(list ...change) error {
	var b []byte
	for _, c := range list {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		b = append(append(b, line...), '\n')
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

// Repairs lists the ids of the repairs that a store's folder has manifests of,
// the newest last.
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

// readManifest reads the lines of a manifest. The last one may be cut: what it
// was about had not begun.
func readManifest(fsys vfs.FS, dir, id string) ([]change, error) {
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, filepath.FromSlash(manifestPath(id))), manifestMost)
	if err != nil {
		return nil, err
	}
	var list []change
	for line := range bytes.Lines(b) {
		var c change
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &c) != nil {
			continue
		}
		if c.Now != 0 && c.Do == "" {
			for i := range list {
				if list[i].N == c.N {
					list[i].Was, list[i].Now = cmp.Or(c.Was, list[i].Was), c.Now
				}
			}
			continue
		}
		list = append(list, c)
	}
	return list, nil
}

// markUndone writes down that an undo of a repair begins, and what it has found out that
// a repair that was cut has not written down.
func markUndone(fsys vfs.FS, dir, id string, untold []change) error {
	lines := []byte("\n") // its last line may have been cut
	for _, c := range append(untold, change{Undone: true}) {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	f, err := fsys.OpenFile(filepath.Join(dir, filepath.FromSlash(manifestPath(id))), os.O_RDWR, 0)
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

// undoneVersions are those that repairs gave and undos took back, by memory.
func undoneVersions(fsys vfs.FS, dir string) (map[string][]uint64, error) {
	ids, err := Repairs(fsys, dir)
	if err != nil {
		return nil, err
	}
	all := map[string][]uint64{}
	for _, id := range ids {
		list, err := readManifest(fsys, dir, id)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(c change) bool { return c.Undone }) {
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
