package vector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/vfs"
)

// Target describes the new vector files: where they are written, which part of the log they cover, and the properties
// of the vectors.
type Target struct {
	FS   vfs.FS
	Dir  string      // the store's folder
	Temp string      // path of temporary files without their extensions, on the same file system; no other process uses it
	Perm fs.FileMode // mode of the files; 0 means 0600
	// FolderPerm is the mode with which the folder vector_index is created if it is missing; 0 means 0700.
	FolderPerm fs.FileMode

	Store  string // the store's UUID
	Chain  uint64 // checksum of the log's last frame before LSN
	LSN    uint64 // the set together with the edits contains all changes below this position in the log
	Now    time.Time
	Metric Metric
	Dim    int
	Model  string
}

// Written describes the vector files that were written.
type Written struct {
	Name    string // name of the FAISS file, relative to the store
	Size    int64  // size of the FAISS file in bytes
	LSN     uint64
	Vectors int64 // number of vectors in the resulting set
	Skipped int   // number of edits whose vector was not available
}

// ErrNoBase means that a delta cannot be written because there is no base.
var ErrNoBase = table.ErrNoBase

const deltaShare = 8 // a delta larger than 1/deltaShare of the base is merged

// MergeDue reports whether the next write of vectors should be a new base instead of a delta. It returns true if there
// is no base, if the FAISS file of the base has fewer bytes than the parameter small, or if the FAISS file of the
// delta is larger than an eighth of that of the base.
func (s *Set) MergeDue(small int64) bool {
	b, d := s.levels[base], s.levels[delta]
	if b == nil || b.f.size() < small {
		return true
	}
	return d != nil && d.f.size() > b.f.size()/deltaShare
}

// HasDelta reports whether the set has a delta.
func (s *Set) HasDelta() bool { return s.levels[delta] != nil }

// WriteBase writes new base files with the vectors of the set and the edits, and then removes the delta. s does not
// change; Load returns the new set. The caller must hold flush.lock and must have loaded s while it held this lock. If
// the dimension or the metric of s differs from that of the target, s must be the result of Empty.
func WriteBase(s *Set, to Target, p Plan) (Written, error) {
	w, err := write(s, to, p, base)
	if err != nil {
		return w, err
	}
	return w, dropDelta(to)
}

// WriteDelta writes a new delta that has the vectors of the current delta with the edits applied. Otherwise it is like
// WriteBase. It returns ErrNoBase if the set has no base.
func WriteDelta(s *Set, to Target, p Plan) (Written, error) {
	if s.levels[base] == nil {
		return Written{}, ErrNoBase
	}
	if from := s.levels[base].t.Meta().LSN; to.LSN <= from {
		return Written{},
			fmt.Errorf("write %s for the log up to position %d: the base already covers the log up to position %d",
				DeltaMapping, to.LSN, from)
	}
	return write(s, to, p, delta)
}

func write(s *Set, to Target, p Plan, which int) (w Written, err error) {
	n := levelNames[which]
	w = Written{Name: n.faiss, LSN: to.LSN}
	if to.LSN < s.lsn {
		return w, fmt.Errorf("write %s for the log up to position %d: the current file already covers the log up to "+
			"position %d",
			n.faiss, to.LSN, s.lsn)
	}
	if s.Exists() && (s.dim != to.Dim || s.metric != to.Metric) {
		return w, fmt.Errorf("write %s with %d dimensions and metric %v: the existing vectors have %d dimensions and "+
			"metric %v",
			n.faiss, to.Dim, to.Metric, s.dim, s.metric)
	}
	if to.Perm == 0 {
		to.Perm = 0o600
	}
	if to.FolderPerm == 0 {
		to.FolderPerm = 0o700
	}
	if err := s.ready(); err != nil {
		return w, err
	}
	folder := filepath.Join(to.Dir, Folder)
	if err := vfs.MkdirAll(to.FS, folder, to.FolderPerm); err != nil {
		return w, err
	}
	if err := settle(s, to); err != nil {
		return w, fmt.Errorf("complete the previous, interrupted write of vectors: %w", err)
	}
	if err := fill(s, to, p, which, &w); err != nil {
		return w, fmt.Errorf("write %s: %w", n.faiss, err)
	}
	if err := place(to, n, folder); err != nil {
		for _, end := range []string{".faiss", ".mapping"} {
			if rerr := to.FS.Remove(to.Temp + end); !missing(rerr) {
				err = errors.Join(err, rerr)
			}
		}
		return w, fmt.Errorf("rename %s into place: %w", n.faiss, err)
	}
	return w, nil
}

// place renames the new FAISS file and the new mapping file of target to their final names n. Each rename is durable
// before the next one begins; see the package comment.
func place(target Target, n names, folder string) error {
	for _, step := range [][2]string{
		{target.Temp + ".faiss", filepath.Join(target.Dir, n.next)},
		{target.Temp + ".mapping", filepath.Join(target.Dir, n.mapping)},
		{filepath.Join(target.Dir, n.next), filepath.Join(target.Dir, n.faiss)},
	} {
		if err := target.FS.Rename(step[0], step[1]); err != nil {
			return err
		}
		if err := target.FS.SyncDir(folder); err != nil {
			return err
		}
	}
	return nil
}

// settle completes the work of a writer that was interrupted. A FAISS file may still have its temporary name,
// names.next. If this file belongs to a mapping file, settle gives the FAISS file its final name; otherwise settle
// removes it.
func settle(s *Set, target Target) error {
	changed := false
	for i, n := range levelNames {
		next := filepath.Join(target.Dir, n.next)
		var err error
		if l := s.levels[i]; l != nil && l.next {
			err = target.FS.Rename(next, filepath.Join(target.Dir, n.faiss))
		} else {
			err = target.FS.Remove(next)
		}
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return target.FS.SyncDir(filepath.Join(target.Dir, Folder))
}

// dropDelta removes the files of the delta after its merge into the new base. It removes the mapping file first.
func dropDelta(to Target) error {
	changed := false
	for _, name := range []string{DeltaMapping, deltaFAISS, deltaNext} {
		err := to.FS.Remove(filepath.Join(to.Dir, name))
		if missing(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("remove the delta %s after its merge into the new base: %w", name, err)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return to.FS.SyncDir(filepath.Join(to.Dir, Folder))
}

// fill writes and syncs the temporary FAISS file and the temporary mapping file. If it fails, it removes both, so that
// they take no space on a full disk.
func fill(s *Set, to Target, p Plan, which int, w *Written) error {
	var f [2]vfs.File
	var err error
	path := [2]string{to.Temp + ".faiss", to.Temp + ".mapping"}
	for i := range f {
		// Remove the file instead of truncating it: after a crash, it may still be open or have another link.
		if err = to.FS.Remove(path[i]); err != nil && !missing(err) {
			break
		}
		if f[i], err = to.FS.OpenFile(path[i], os.O_RDWR|os.O_CREATE|os.O_EXCL, to.Perm); err != nil {
			break
		}
	}
	if err == nil {
		err = writeFiles(s, to, p, which, f, w)
	}
	for i := range f {
		if f[i] == nil {
			continue
		}
		if err == nil {
			err = f[i].Sync()
		}
		if cerr := f[i].Close(); err == nil {
			err = cerr
		}
	}
	if err == nil {
		return nil
	}
	for i := range f {
		if f[i] != nil {
			err = errors.Join(err, to.FS.Remove(path[i]))
		}
	}
	return err
}

// writeFiles writes the FAISS file and the mapping file in two passes: first the rows of the FAISS file, then its ids
// and the mapping file. The ids come after the rows in the FAISS file, so their offset is known only after the first
// pass.
func writeFiles(s *Set, to Target, p Plan, which int, f [2]vfs.File, w *Written) error {
	r := rewrite{s: s, to: to, p: p, asDelta: which == delta, skip: [kinds]map[string]bool{{}, {}}}
	r.faiss = newFAISSWriter(vfs.Streamed(f[0]), shape{metric: to.Metric, dim: to.Dim})
	for kind := range kinds {
		if err := r.rows(kind); err != nil {
			return err
		}
		w.Skipped += len(r.skip[kind])
	}
	if err := r.faiss.ids(); err != nil {
		return err
	}
	r.mapping = table.NewWriter(vfs.Streamed(f[1]), Schema())
	live := make([]int64, kinds)
	for kind := range kinds {
		if err := r.mapping.Section(); err != nil {
			return err
		}
		n, err := r.ids(kind)
		if err != nil {
			return err
		}
		live[kind] = n
		w.Vectors += n
	}
	size, err := r.faiss.finish()
	if err != nil {
		return err
	}
	w.Size = size
	mtime := stamp(s, to)
	if err := f[0].SetMtime(mtime); err != nil {
		return err
	}
	x, err := json.Marshal(extra{
		Chain: fmt.Sprintf("%016x", to.Chain), Metric: to.Metric.String(), Dimension: to.Dim, Model: to.Model,
		FAISS: faissFile{Size: size, Mtime: mtime.UnixMicro(), Blocks: string(r.faiss.hashes)},
	})
	if err != nil {
		return err
	}
	meta := table.Meta{Store: to.Store, LSN: to.LSN, Updated: to.Now, Extra: x}
	if which == delta {
		meta.From = s.levels[base].t.Meta().LSN
	}
	_, err = r.mapping.Finish(meta, live)
	return err
}

// stamp returns the modification time for the FAISS file. It is the current time, with microseconds that are derived
// from the LSN, so that two writes have different times even if the clock does not advance. It differs from the times
// of the set's FAISS files, because a mapping file identifies its FAISS file by the modification time.
func stamp(s *Set, to Target) time.Time {
	t := to.Now.Truncate(time.Second).Add(time.Duration(to.LSN/8%1e6) * time.Microsecond)
	for slices.ContainsFunc(s.levels[:], func(l *level) bool { return l != nil && l.x.FAISS.Mtime == t.UnixMicro() }) {
		t = t.Add(time.Second)
	}
	return t
}
