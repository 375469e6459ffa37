package offsite

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
)

// Step is a folder beside a new store. It contains the clone from which the fork of a store is made. A process that is
// killed leaves the folder; the next fork into the same folder removes it.
type Step struct {
	fs   vfs.FS
	dir  string
	lock vfs.Lock
}

const (
	stepKind   = "fork"
	stepSuffix = ".clone"
	stepStore  = "store" // folder of the clone
	stepLock   = "lock"  // held by the process that uses the folder
	// PackedSuffix is the suffix that the path of the clone gets to form the path of the clone's packed backup.
	PackedSuffix = ".varve"
)

var stepName = regexp.MustCompile(`^(.+)\.[0-9a-f]{16}\` + stepSuffix + `$`)

// NewStep creates and locks the folder for a fork of a store whose new folder is target. It first removes the
// folders that killed processes have left beside target.
func NewStep(fsys vfs.FS, target string, store uuid.UUID, self vfs.Users, random io.Reader,
	file, folder fs.FileMode) (s *Step, err error) {
	parent := filepath.Dir(target)
	if err := vfs.MkdirAll(fsys, parent, folder); err != nil {
		return nil, vfs.Failed("creating", parent, err)
	}
	clearSteps(fsys, target, store, self, file)
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, err
	}
	s = &Step{dir: target + "." + hex.EncodeToString(b[:]) + stepSuffix}
	s.fs = vfs.Below(fsys, s.dir)
	if err := s.fs.Mkdir(s.dir, folder); err != nil {
		return nil, vfs.Failed("creating", s.dir, err)
	}
	ok := false
	if s.lock, err = s.fs.OpenLock(filepath.Join(s.dir, stepLock), file); err == nil {
		if ok, err = s.lock.TryLock(vfs.ModeExclusive); err == nil && !ok {
			err = &errs.LockError{Path: s.dir, Err: errors.New("another process uses this folder")}
		}
	}
	if err == nil {
		err = vfs.WriteMark(s.fs, s.dir, vfs.Mark{Kind: stepKind, Store: store}, file)
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// Store returns the path of the clone.
func (s *Step) Store() string { return filepath.Join(s.dir, stepStore) }

// Remove removes the folder of the Step, with the clone in it.
func (s *Step) Remove() (err error) {
	if s.lock != nil {
		err = s.lock.Close()
	}
	return errors.Join(err, vfs.RemoveKnown(s.fs, s.dir, ofStep))
}

// clearSteps removes the folders that killed processes have left while they made a fork of the same store. A folder
// that cannot be removed stays.
func clearSteps(fsys vfs.FS, to string, store uuid.UUID, self vfs.Users, file fs.FileMode) {
	parent := filepath.Dir(to)
	names, _ := vfs.ReadRoot(fsys, parent)
	for _, name := range names {
		if found := stepName.FindStringSubmatch(name); found == nil || found[1] != filepath.Base(to) {
			continue
		}
		dir := filepath.Join(parent, name)
		below := vfs.Below(fsys, dir)
		info, err := below.Stat(dir)
		if err != nil || !info.Mode.IsDir() || !self.Own(&info) || vfs.IsMount(below, dir) {
			continue
		}
		if m, ok := vfs.Unfinished(below, dir); !ok || m.Kind != stepKind || m.Store != store {
			continue
		}
		lock, err := below.OpenLock(filepath.Join(dir, stepLock), file)
		if err != nil {
			continue
		}
		free, err := lock.TryLock(vfs.ModeExclusive)
		if cerr := lock.Close(); err == nil && cerr == nil && free {
			_ = vfs.RemoveKnown(below, dir, ofStep)
		}
	}
}

// ofStep reports whether a file or folder of this name is in the folder of a Step.
func ofStep(rel string, folder bool) bool {
	top, below, in := strings.Cut(rel, "/")
	switch {
	case rel == ".", rel == stepStore:
		return folder
	case !in:
		return !folder && (rel == vfs.MarkName || rel == stepLock || strings.HasPrefix(rel, stepStore+PackedSuffix))
	case top != stepStore:
		return false
	}
	switch first, _, in := strings.Cut(below, "/"); {
	case below == vfs.MarkName:
		return !folder
	case in && (first == record.NoteFolder || first == "quarantine" || first == index.BackupsDir || first == "tmp"):
		return true
	}
	return places.IsName(below, folder)
}
