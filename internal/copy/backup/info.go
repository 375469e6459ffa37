package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

const (
	// BackupFormat is the highest version of the format of backups that this package writes and reads.
	BackupFormat = 3 // the format version of a backup with features
	withModels   = 2
	modelless    = 1 // the format version for a store that never had a model
	backupList   = "files.sha256"
	backupBy     = "files.writers"
	backupPurges = "files.purges"
	backupWAL    = "wal"
)

// olderMark is the character before the name of a file in files.sha256 if the vector in that file was made by the
// previous embedding model. For sha256sum the character marks a binary file, which makes no difference.
const olderMark = '*'

// backupFile returns the path of the document with a key, in a backup and in a store. It returns false if the key is
// not that of a document.
func backupFile(key string) (string, bool) {
	k := kind.Of(key)
	if k == nil {
		return "", false
	}
	return k.File(key[1:]), true
}

func position(m wal.Mark) repair.Position {
	return repair.Position{LSN: m.LSN, Chain: fmt.Sprintf("%016x", m.Sum)}
}

// markAt converts a position to a mark of the log.
func markAt(p repair.Position) (wal.Mark, error) {
	sum, err := strconv.ParseUint(p.Chain, 16, 64)
	return wal.Mark{LSN: p.LSN, Sum: sum}, err
}

// geometryOf returns the geometry of the log of a backup.
func geometryOf(i *repair.BackupInfo) segment.Geometry {
	return segment.Geometry{UUID: i.Store, Size: i.SegmentSize}
}

// notCopied are the features that only announce files which no backup contains: the new store sets each feature again
// when it writes the first such file.
const notCopied = wal.FeatureViews | wal.FeatureTerms

// featuresOf returns the features of the store that was backed up.
func featuresOf(i *repair.BackupInfo) (wal.Features, error) {
	if i.Features == "" {
		return 0, nil
	}
	f, err := strconv.ParseUint(i.Features, 16, 64)
	return wal.Features(f), err
}

// filesOf returns the number of files in a backup.
func filesOf(i *repair.BackupInfo) int64 {
	return i.Memories + i.Assemblies + i.Scopes + sum(i.Others)
}

func sum(others map[string]int64) (n int64) {
	for _, of := range others {
		n += of
	}
	return n
}

// sumOf returns the checksum of a backup's description.
func sumOf(i *repair.BackupInfo) (string, error) {
	c := *i
	c.Sum = ""
	b, err := json.Marshal(&c)
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:]), nil
}

// encodeInfo sets the checksum, and encodes the description.
func encodeInfo(i *repair.BackupInfo) ([]byte, error) {
	var err error
	if i.Sum, err = sumOf(i); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return nil, err
	}
	if b = append(b, '\n'); len(b) > places.BackupMost {
		return nil, fmt.Errorf("writing %s: %w: the file has %d bytes, but at most %d can be read back; it names %d "+
			"damaged files → repair the store first", repair.BackupName, errs.ErrTooLarge, len(b), places.BackupMost,
			len(i.Damaged))
	}
	return b, nil
}

// ReadInfo reads the description of a backup. The error matches errs.ErrNoStore if the folder is
// not a backup.
func ReadInfo(fsys vfs.FS, dir string) (repair.BackupInfo, error) {
	var i repair.BackupInfo
	b, err := vfs.ReadText(fsys, filepath.Join(dir, repair.BackupName), places.BackupMost)
	if errors.Is(err, fs.ErrNotExist) {
		return i, fmt.Errorf("%s: %w: %s is missing: not a backup, or an incomplete one", dir, errs.ErrNoStore,
			repair.BackupName)
	}
	if errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, errs.ErrTooLarge) || errors.Is(err, vfs.ErrZeros) {
		return i, damagedBackup(repair.BackupName, err)
	}
	if err != nil {
		return i, fmt.Errorf("reading %s: %w", filepath.Join(dir, repair.BackupName), err)
	}
	return parseInfo(dir, b)
}

func parseInfo(dir string, b []byte) (repair.BackupInfo, error) {
	var i repair.BackupInfo
	if err := json.Unmarshal(b, &i); err != nil {
		return i, damagedBackup(repair.BackupName, err)
	}
	if i.Format > BackupFormat {
		return i, &errs.NewerError{Path: dir, Format: uint64(i.Format), Reads: BackupFormat}
	}
	sum, err := sumOf(&i)
	if err == nil && (sum != i.Sum || i.Format < 1) {
		err = errors.New("checksum mismatch")
	}
	if err == nil {
		_, err = featuresOf(&i)
	}
	if err == nil && (i.SegmentSize < segment.MinSize || i.SegmentSize > segment.MaxSize) {
		err = fmt.Errorf("the segment size %d is outside the valid range", i.SegmentSize)
	}
	if err != nil {
		return i, damagedBackup(repair.BackupName, err)
	}
	return i, nil
}

func damagedBackup(name string, err error) error {
	return &errs.CorruptionError{Path: name, Offset: -1, Err: err}
}
