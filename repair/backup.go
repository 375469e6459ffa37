package repair

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
)

// BackupName is the file by which a folder is known as a backup. It is written last.
const BackupName = "backup.json"

// BackupInfo describes a backup.
type BackupInfo struct {
	Format      int       `json:"varve_backup"`
	Store       uuid.UUID `json:"store"` // whose it is
	SegmentSize uint64    `json:"segment_size"`
	Made        time.Time `json:"made"`
	Memories    int64     `json:"memories"`             // files
	Assemblies  int64     `json:"assemblies,omitempty"` // likewise
	Scopes      int64     `json:"scopes,omitempty"`     // of working memory, likewise
	// Others are those of other kinds of documents, by folder.
	Others map[string]int64 `json:"others,omitempty"`
	Bytes  int64            `json:"bytes"` // in all of them
	List   string           `json:"list"`  // sha256 of files.sha256

	From  Position `json:"from"`  // the log begins here; the files hold everything before
	Whole uint64   `json:"whole"` // the files may have versions that were written below this, and lack earlier ones
	End   Position `json:"end"`   // where the log ends

	First Moment    `json:"first"` // the earliest that can be restored
	Last  Moment    `json:"last"`  // the newest commit in it
	Until time.Time `json:"until"` // when that was the newest

	Models   *BackupModel    `json:"models,omitempty"`   // nil: no model is known
	Computed *BackupComputed `json:"computed,omitempty"` // nil: no re-embedding was under way

	// Writers is the sha256 of files.writers, "" where there is no such file: no writer is known.
	Writers string `json:"writers,omitempty"`

	// Purges is the sha256 of files.purges, "" where there is no such file: nothing was purged.
	Purges string `json:"purges,omitempty"`

	// Features are those of the store as wal.Features, 16 hex digits, "" for none. A program
	// that restores the backup must know them all.
	Features string `json:"features,omitempty"`

	Config  json.RawMessage `json:"config,omitempty"`  // the store's config.json
	Damaged []DamagedFile   `json:"damaged,omitempty"` // memories that could not be read, and are not in it
	Sum     string          `json:"sum"`               // sha256 of this without sum, without white space

	// Left are unfinished backups of this store beside this one that were not removed, each with the
	// reason: a file in them is not of a backup.
	Left []string `json:"-"`
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

// DamagedFile is a memory, or an assembly, that a backup has not.
type DamagedFile struct {
	ID  string `json:"id"`
	In  string `json:"in,omitempty"` // its folder, where that is not memories
	Why string `json:"why"`
}

// MomentError says that a moment cannot be restored. It matches errs.ErrTruncated.
type MomentError struct {
	Asked       string // as it was given
	First, Last Moment // between these it can be
	Why         string
}

func (e *MomentError) Error() string {
	return fmt.Sprintf("%s cannot be restored: %s; the range is %s (LSN %d) to %s (LSN %d)",
		e.Asked, e.Why, e.First.Time.Format(time.RFC3339Nano), e.First.LSN, e.Last.Time.Format(time.RFC3339Nano), e.Last.LSN)
}

// Unwrap makes the error match errs.ErrTruncated.
func (e *MomentError) Unwrap() error { return errs.ErrTruncated }

// BackupModel names the models that made the vectors of a backup.
type BackupModel struct {
	From index.Model `json:"from"` // where the log begins: the marks in the list are by it
	End  index.Model `json:"end"`  // when config.json was read, which may be behind the log's end
}

// BackupComputed describes the copy of what a re-embedding has computed.
type BackupComputed struct {
	Size int64  `json:"size"`
	Sum  string `json:"sum"` // sha256
}

// BackupOptions of a backup.
type BackupOptions struct {
	// Progress is called from time to time with the number of memories copied, and of all; total
	// may grow.
	Progress func(done, total int64)
}

// RestoreReport reports what was restored.
type RestoreReport struct {
	Moment     Moment // the newest commit in it
	Memories   int64
	Assemblies int64
	Bytes      int64
	Scopes     int64            // of working memory
	Others     map[string]int64 // of other kinds of documents, by folder
	FromLog    int64            // of all of them
	// documents of the backup that were purged since, and are left out
	Purged  int64
	Damaged []DamagedFile // when the backup was made
	Damage  []Damage      // of the backup itself
	Left    []string      // as in BackupInfo, beside the restored store
}

// Damage is a file of a backup that is not what was backed up, and what a restore did about it.
type Damage struct {
	Path    string // in the backup, as memories/x.json
	ID      string // of the memory or the assembly, "" where it is neither
	Why     string
	Done    string // where the content was taken from, or "missing"
	Missing bool   // something of it is not in the restored store
}

// String names it in one line.
func (d *Damage) String() string {
	return d.Path + " is damaged in the backup: " + d.Why + ": " + d.Done
}
