package repair

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// BackupName is the file by which a folder is known as a backup. It is written last.
const BackupName = "backup.json"

const (
	backupFormat   = 2 // with models
	modelless      = 1 // the format of a store that nobody has told of a model
	backupList     = "files.sha256"
	backupMemories = "memories"
	backupGroups   = "assemblies"
	backupWAL      = "wal"
	manifestLimit  = 64 << 20
)

// BackupInfo is what a backup says of itself.
type BackupInfo struct {
	Format      int       `json:"varve_backup"`
	Store       uuid.UUID `json:"store"` // whose it is
	SegmentSize uint64    `json:"segment_size"`
	Made        time.Time `json:"made"`
	Memories    int64     `json:"memories"`             // files
	Assemblies  int64     `json:"assemblies,omitempty"` // likewise
	Scopes      int64     `json:"scopes,omitempty"`     // of working memory, likewise
	Bytes       int64     `json:"bytes"`                // in all of them
	List        string    `json:"list"`                 // sha256 of files.sha256

	From  Position `json:"from"`  // the log begins here; the files hold everything before
	Whole uint64   `json:"whole"` // the files may hold what was written below this, and lack what stood before
	End   Position `json:"end"`   // where the log ends

	First Moment    `json:"first"` // the earliest that can be restored
	Last  Moment    `json:"last"`  // the newest commit in it
	Until time.Time `json:"until"` // when that was the newest

	Models   *BackupModel    `json:"models,omitempty"`   // nil: nobody ever spoke of one
	Computed *BackupComputed `json:"computed,omitempty"` // nil: no re-embedding was under way

	Config  json.RawMessage `json:"config,omitempty"`  // the store's config.json
	Damaged []DamagedFile   `json:"damaged,omitempty"` // memories that could not be read, and are not in it
	Sum     string          `json:"sum"`               // sha256 of this without sum, without white space
}

// Position is a place in a log with the chain hash there, 16 hex digits.
type Position struct {
	LSN   uint64 `json:"lsn"`
	Chain string `json:"chain"`
}

// Moment is a commit, by its version and its time.
type Moment struct {
	LSN  uint64    `json:"lsn"`
	Time time.Time `json:"time"`
}

// backupFolders are those of the documents in a backup, in the order of its list.
var backupFolders = []string{backupMemories, backupGroups, workingFolder}

// olderMark stands before a file in the list whose vector is of the model before; it
// tells sha256sum of a binary file, which to it is the same.
const olderMark = '*'

// backupFile is where the document of a key in the log is in a backup, and in a
// store; false when it is the key of no document.
func backupFile(key string) (string, bool) {
	if len(key) < 2 {
		return "", false
	}
	switch key[0] {
	case record.Memory:
		return backupMemories + "/" + docfile.FileName(key[1:]), true
	case record.Assembly:
		return backupGroups + "/" + docfile.FileName(key[1:]), true
	}
	return "", false
}

// DamagedFile is a memory, or an assembly, that a backup has not.
type DamagedFile struct {
	ID  string `json:"id"`
	In  string `json:"in,omitempty"` // its folder, where that is not memories
	Why string `json:"why"`
}

func position(m wal.Mark) Position { return Position{m.LSN, fmt.Sprintf("%016x", m.Sum)} }

func (p Position) mark() (wal.Mark, error) {
	sum, err := strconv.ParseUint(p.Chain, 16, 64)
	return wal.Mark{LSN: p.LSN, Sum: sum}, err
}

func (i *BackupInfo) geometry() segment.Geometry {
	return segment.Geometry{UUID: i.Store, Size: i.SegmentSize}
}

// files is how many there are.
func (i *BackupInfo) files() int64 { return i.Memories + i.Assemblies + i.Scopes }

func (i *BackupInfo) sum() (string, error) {
	c := *i
	c.Sum = ""
	b, err := json.Marshal(&c)
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:]), nil
}

func (i *BackupInfo) encode() ([]byte, error) {
	var err error
	if i.Sum, err = i.sum(); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(i, "", "  ")
	return append(b, '\n'), err
}

// ReadBackupInfo reads a backup's own account. errs.ErrNoStore when the folder
// is none.
func ReadBackupInfo(fsys vfs.FS, dir string) (BackupInfo, error) {
	var i BackupInfo
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, BackupName), manifestLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return i, fmt.Errorf("%s: %w: it has no %s, so it is no backup, or half of one", dir, errs.ErrNoStore, BackupName)
	}
	if errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, errs.ErrTooLarge) {
		return i, damagedBackup(BackupName, err)
	}
	if err != nil {
		return i, fmt.Errorf("reading %s: %w", filepath.Join(dir, BackupName), err)
	}
	if err := json.Unmarshal(b, &i); err != nil {
		return i, damagedBackup(BackupName, err)
	}
	if i.Format > backupFormat {
		return i, &errs.NewerError{Path: dir, Format: uint64(i.Format), Reads: backupFormat}
	}
	sum, err := i.sum()
	if err == nil && (sum != i.Sum || i.Format < 1) {
		err = errors.New("it does not match its checksum")
	}
	if err == nil && (i.SegmentSize < segment.MinSize || i.SegmentSize > segment.MaxSize) {
		err = fmt.Errorf("segments of %d bytes", i.SegmentSize)
	}
	if err != nil {
		return i, damagedBackup(BackupName, err)
	}
	return i, nil
}

func damagedBackup(name string, err error) error {
	return &errs.CorruptionError{Path: name, Offset: -1, Err: err}
}

// MomentError says that a moment cannot be restored. It matches errs.ErrTruncated.
type MomentError struct {
	Asked       string // as it was given
	First, Last Moment // between these it can be
	Why         string
}

func (e *MomentError) Error() string {
	return fmt.Sprintf("%s cannot be restored: %s; what can lies between %s (LSN %d) and %s (LSN %d)",
		e.Asked, e.Why, e.First.Time.Format(time.RFC3339Nano), e.First.LSN, e.Last.Time.Format(time.RFC3339Nano), e.Last.LSN)
}

// Unwrap makes the error match errs.ErrTruncated.
func (e *MomentError) Unwrap() error { return errs.ErrTruncated }
