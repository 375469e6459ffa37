package repair

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
)

// BackupName is the name of the file whose presence makes a folder a backup. It is written last.
const BackupName = "backup.json"

// BackupInfo describes a backup. It is the content of the file BackupName in the backup.
type BackupInfo struct {
	Format      int       `json:"varve_backup"`
	Store       uuid.UUID `json:"store"` // UUID of the store
	SegmentSize uint64    `json:"segment_size"`
	Made        time.Time `json:"made"`
	Memories    int64     `json:"memories"`             // number of files of memories
	Assemblies  int64     `json:"assemblies,omitempty"` // number of files of assemblies
	Scopes      int64     `json:"scopes,omitempty"`     // number of files of working memory
	// Others are the numbers of files of other kinds of documents than memories and assemblies, by folder.
	Others map[string]int64 `json:"others,omitempty"`
	Bytes  int64            `json:"bytes"` // total size of all files, in bytes
	List   string           `json:"list"`  // sha256 of files.sha256

	// the position at which the copied log begins; the document files include everything before it
	From Position `json:"from"`
	// position from which on every moment can be restored: files may have versions written below it, whose earlier
	// versions are not in the backup
	Whole uint64   `json:"whole"`
	End   Position `json:"end"` // the position at which the copied log ends

	First Moment    `json:"first"` // earliest moment that can be restored
	Last  Moment    `json:"last"`  // newest commit in the backup
	Until time.Time `json:"until"` // time up to which no commit after Last was made

	Models *BackupModel `json:"models,omitempty"` // embedding model; nil: unknown
	// vectors that a running re-embedding had computed; nil: no re-embedding was running
	Computed *BackupComputed `json:"computed,omitempty"`

	// Writers is the sha256 of files.writers; "" if that file is missing, because no writer is
	// known.
	Writers string `json:"writers,omitempty"`

	// Purges is the sha256 of files.purges; "" if that file is missing, because nothing was purged.
	Purges string `json:"purges,omitempty"`

	// Features are the features of the store, a wal.Features in 16 hex digits; "" for none. A program that restores
	// the backup must support all of them.
	Features string `json:"features,omitempty"`

	Config  json.RawMessage `json:"config,omitempty"`  // the store's config.json
	Damaged []DamagedFile   `json:"damaged,omitempty"` // documents that could not be read and are not in the backup
	// sha256 of this JSON document, without the member sum and without white space
	Sum string `json:"sum"`

	// Left are unfinished backups of this store in the same folder as this backup that were not removed, each with the
	// reason: one of their files does not belong to a backup.
	Left []string `json:"-"`
}

// Position is a position in a log and the chain hash at that position, in 16 hex digits.
type Position struct {
	LSN   uint64 `json:"lsn"`
	Chain string `json:"chain"`
}

// Moment identifies a commit by its version and its time.
type Moment struct {
	LSN  uint64    `json:"lsn"`
	Time time.Time `json:"time"`
}

// DamagedFile is a document that is missing in a backup because its file could not be read.
type DamagedFile struct {
	ID  string `json:"id"`
	In  string `json:"in,omitempty"` // the folder of the document, if not memories
	Why string `json:"why"`
}

// MomentError reports that a store cannot be restored to the requested moment. The error matches errs.ErrTruncated.
type MomentError struct {
	Asked       string // the moment as the caller gave it
	First, Last Moment // the first and the last moment to which a restore is possible
	Why         string
}

func (e *MomentError) Error() string {
	return fmt.Sprintf("%s cannot be restored: %s; moments from %s (LSN %d) to %s (LSN %d) can be restored",
		e.Asked, e.Why, e.First.Time.Format(time.RFC3339Nano), e.First.LSN, e.Last.Time.Format(time.RFC3339Nano), e.Last.LSN)
}

// Unwrap makes the error match errs.ErrTruncated.
func (e *MomentError) Unwrap() error { return errs.ErrTruncated }

// BackupModel has the names of the embedding models that made the vectors in a backup.
type BackupModel struct {
	// embedding model at the start of the copied log; files with a mark in files.sha256 have vectors by this
	// model
	From index.Model `json:"from"`
	// the model at the time when config.json was read, which may be before the end of the copied log
	End index.Model `json:"end"`
}

// BackupComputed describes a file in a backup that has computed vectors. If the store was being re-embedded by another
// model when the backup was made, the file has the vectors that were already computed.
type BackupComputed struct {
	Size int64  `json:"size"`
	Sum  string `json:"sum"` // sha256 of the copy
}

// BackupOptions are the options of a backup.
type BackupOptions struct {
	// Progress is called from time to time with the number of memories copied, and the number of all memories; total
	// may grow.
	Progress func(done, total int64)
	// Packed writes one compressed file in place of a folder.
	Packed bool
	// Output receives a packed backup in place of a file; the path of the backup must be "" then. What it has received
	// cannot be read back, so a backup that ends without an error is complete in Output, and Output makes it durable.
	Output io.Writer
	// Seal encrypts a packed backup, so that nothing of the store is written as plain text; nil: the backup is not
	// encrypted. It returns a writer that writes to w what it is given, encrypted, and whose Close writes the end and
	// does not close w. The library age has such a function: age.Encrypt.
	Seal func(w io.Writer) (io.WriteCloser, error)
}

// Unseal opens a packed backup that BackupOptions.Seal has encrypted. It returns a reader of the decrypted bytes, and
// their number. If reading the parameter sealed fails, the errors of Unseal and of the returned reader must wrap that
// error. All other errors count as damage. The library age has such a function: age.DecryptReaderAt.
type Unseal = func(sealed io.ReaderAt, size int64) (plain io.ReaderAt, plainSize int64, err error)

// RestoreReport is the result of a restore.
type RestoreReport struct {
	Moment     Moment // newest commit in the restored store
	Memories   int64
	Assemblies int64
	Bytes      int64
	Scopes     int64            // number of scopes of working memory that were restored
	Others     map[string]int64 // number of documents of other kinds that were restored, by folder
	FromLog    int64            // number of these documents that were restored from the log and not from a file
	// number of documents in the backup that were purged later, and are omitted
	Purged  int64
	Damaged []DamagedFile // documents that could not be read when the backup was made, and are missing in it
	Damage  []Damage      // damaged files of the backup itself
	// leftovers that were not removed, as in BackupInfo, in the folder that contains the restored store
	Left []string
}

// Damage describes a file of a backup that differs from the file that was backed up, and how a restore has handled the
// file.
type Damage struct {
	Path    string // path of the file in the backup, such as memories/x.json
	ID      string // id of the memory or assembly, "" for another file
	Why     string
	Done    string // the source of the restored content, or "missing"
	Missing bool   // part of the file's content is missing in the restored store
}

// String returns a description of the damage in one line.
func (d *Damage) String() string {
	return d.Path + " is damaged in the backup: " + d.Why + ": " + d.Done
}
