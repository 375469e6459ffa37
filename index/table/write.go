package table

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

// Target describes where and how a new table file is written.
type Target struct {
	FS      vfs.FS
	Dir     string
	Temp    string      // path of a temporary file on the same file system that no other process uses
	Perm    fs.FileMode // permissions of the new file; 0 means 0600
	Meta    Meta        // metadata of the new file; the writer sets From
	Offsets bool        // also write the offsets of the new file, if it is large enough
	// Ready is called when the new file is written and durable, before it is renamed into place: the files that
	// the new one refers to must be durable when Ready returns. It may be nil.
	Ready func() error
	// Keep is called before a new base replaces the old one, which it may link to another name. It may be nil.
	Keep func() error
}

// Result describes the table file that was written.
type Result struct {
	Name  string
	Size  int64
	From  uint64
	LSN   uint64
	Lines []int64 // number of lines by section, in this file
	Live  []int64 // number of live entries by section, in base and delta together
	// OffsetsErr is the reason why the offsets could not be written. Look-ups search the table then.
	OffsetsErr error
}

// ErrNoBase reports that a delta cannot be written because there is no base.
var ErrNoBase = errors.New("there is no base to which a delta could be written")

// WriteBase writes the set with the plan's changes as the new base, makes the base durable, and then removes
// the delta. If WriteBase is interrupted, the folder has the old base and delta, or the new base with the old
// delta (which is then ignored), or the new base alone.
func WriteBase(s *Set, to Target, p Plan) (Result, error) {
	to.Meta.From = 0
	r, err := write(s, to, p, s.sch.Base(), false)
	if err != nil {
		return r, err
	}
	err = to.FS.Remove(filepath.Join(to.Dir, s.sch.Delta()))
	if missing(err) {
		return r, nil
	}
	if err == nil && s.delta != nil && s.delta.OffsetsName() != "" {
		err = ignoreMissing(to.FS.Remove(filepath.Join(to.Dir, filepath.FromSlash(s.delta.OffsetsName()))))
	}
	if err == nil {
		err = to.FS.SyncDir(to.Dir)
	}
	if err != nil {
		return r, fmt.Errorf("removing %s, which is merged into the new base: %w", s.sch.Delta(), err)
	}
	return r, nil
}

// WriteDelta writes the set's delta, merged with the plan's changes, as the new delta.
func WriteDelta(s *Set, to Target, p Plan) (Result, error) {
	if s.base == nil {
		return Result{}, ErrNoBase
	}
	to.Meta.From, to.Keep = s.base.meta.LSN, nil
	if to.Meta.LSN <= s.base.meta.LSN {
		return Result{}, fmt.Errorf("writing %s, which covers the log up to %d: the base already covers the log up "+
			"to %d", s.sch.Delta(), to.Meta.LSN, s.base.meta.LSN)
	}
	return write(s, to, p, s.sch.Delta(), true)
}

func write(s *Set, to Target, p Plan, name string, asDelta bool) (Result, error) {
	r := Result{Name: name, From: to.Meta.From, LSN: to.Meta.LSN}
	if to.Meta.LSN < s.lsn {
		return r, fmt.Errorf("writing %s, which covers the log up to %d: the current file already covers the log up "+
			"to %d", name, to.Meta.LSN, s.lsn)
	}
	if err := fill(s, to, p, asDelta, &r); err != nil {
		return r, fmt.Errorf("write %s: %w", name, err)
	}
	// Before the table is in place: a process that maps the table finds its offsets then.
	r.OffsetsErr = offsetsOfNew(to, s.sch, name, r.Size)
	if to.Ready != nil {
		if err := to.Ready(); err != nil {
			return r, err
		}
	}
	if to.Keep != nil {
		if err := to.Keep(); err != nil {
			return r, fmt.Errorf("keeping the old %s: %w", name, err)
		}
	}
	if err := to.FS.Rename(to.Temp, filepath.Join(to.Dir, name)); err != nil {
		return r, fmt.Errorf("rename %s into place: %w", name, err)
	}
	if err := to.FS.SyncDir(to.Dir); err != nil {
		return r, fmt.Errorf("make %s durable: %w", name, err)
	}
	return r, nil
}

// perm returns the mode of the files that are written.
func (to *Target) perm() fs.FileMode {
	if to.Perm == 0 {
		return 0o600
	}
	return to.Perm
}

// fill writes and syncs the temporary file target.Temp: the content of a new delta if asDelta is true, otherwise of a
// new base. If fill fails, it removes the file, to free the space on a full disk.
func fill(s *Set, target Target, p Plan, asDelta bool, r *Result) error {
	f, err := vfs.CreateNew(target.FS, target.Temp, target.perm())
	if err != nil {
		return err
	}
	w := NewWriter(vfs.Streamed(f), s.sch)
	m := merge{s: s, w: w, plan: p, asDelta: asDelta}
	body := func() error {
		live, err := m.all()
		if err != nil {
			return err
		}
		r.Live = live
		if p.Extra != nil {
			target.Meta.Extra = p.Extra()
		}
		r.Size, err = w.Finish(target.Meta, live)
		return err
	}
	if s.base != nil {
		err = s.base.guard(body)
	} else {
		err = body()
	}
	for _, v := range w.sections {
		r.Lines = append(r.Lines, v.lines)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return errors.Join(err, target.FS.Remove(target.Temp))
	}
	return nil
}
