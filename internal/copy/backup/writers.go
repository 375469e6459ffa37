package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// A document does not have its writer: the index and the log do, and a backup has no index. So a
// backup of a store with writers has files.writers, described in the package comment. It refers to
// a writer by the position of the entry that describes it, which is unique even if a number was
// assigned twice.

// writersMost is the maximum size of files.writers that is read.
const writersMost = 1 << 30

// writersList writes files.writers. It creates the file at the first document that has a writer.
type writersList struct {
	f    form
	file text
	out  *bufio.Writer
	sum  hash.Hash
}

func newWritersList(f form) *writersList { return &writersList{f: f, sum: sha256.New()} }

func (l *writersList) open() (err error) {
	if l.out != nil {
		return nil
	}
	if l.file, err = l.f.create(backupBy); err == nil {
		l.out = bufio.NewWriterSize(io.MultiWriter(l.file, l.sum), 64<<10)
	}
	return err
}

// add writes the line for a document, unless the document's writer is unknown.
func (l *writersList) add(w writer.Writer, name string) error {
	if w.Since == 0 {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(l.out, "%d %s\n", w.Since, name)
	return err
}

// finish adds the descriptions of the writers, and returns the hash of the file.
func (l *writersList) finish(store [16]byte, list []writer.Writer) (string, error) {
	if err := l.open(); err != nil {
		return "", err
	}
	b := []byte("\n")
	for i := range list {
		var err error
		if b, err = writer.AppendRow(b, store, &list[i]); err != nil {
			return "", err
		}
	}
	_, err := l.out.Write(b)
	if err == nil {
		err = l.out.Flush()
	}
	if err == nil {
		err = l.file.Sync()
	}
	return hex.EncodeToString(l.sum.Sum(nil)), err
}

func (l *writersList) close() {
	if l.file != nil {
		_ = l.file.Close() // it was synced, or the backup fails
	}
}

// writers completes files.writers with the descriptions of the writers that the log explains below end, the end of the
// log.
func (b *backup) writers(end wal.LSN) error {
	list, err := b.s.Writers()
	if err != nil {
		return err
	}
	for len(list) > 0 && list[len(list)-1].Since >= end {
		list = list[:len(list)-1]
	}
	if len(list) == 0 {
		return nil
	}
	b.info.Writers, err = b.by.finish(b.info.Store, list)
	return err
}

// parseWriters parses files.writers. It calls document for each line about a document, with the
// name and the position of the description of its writer, then explain for each description.
func parseWriters(b []byte, store [16]byte, document func(name string, at uint64),
	explain func(w writer.Writer)) error {
	lines, rows, ok := bytes.Cut(b, []byte("\n\n"))
	if bytes.HasPrefix(b, []byte("\n")) {
		lines, rows, ok = nil, b[1:], true
	}
	if !ok {
		return errors.New("the descriptions of the writers are missing")
	}
	n := 0
	for line := range bytes.Lines(lines) {
		n++
		position, name, found := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		at, err := strconv.ParseUint(string(position), 10, 64)
		if !found || err != nil || !isListed(string(name)) {
			return fmt.Errorf("line %d does not have a position and a file", n)
		}
		document(string(name), at)
	}
	for row := range bytes.Lines(rows) {
		n++
		w, ok := writer.ParseRow(row, store)
		if !ok {
			return fmt.Errorf("line %d is not the description of a writer", n+1)
		}
		explain(w)
	}
	return nil
}

// writersIn reads files.writers of a backup, and verifies its hash.
func writersIn(fsys vfs.FS, dir string, info *repair.BackupInfo) ([]byte, error) {
	if info.Writers == "" {
		return nil, nil
	}
	path := filepath.Join(dir, backupBy)
	b, err := vfs.ReadFile(fsys, path, writersMost)
	switch {
	case errors.Is(err, fs.ErrNotExist) || notAFile(err):
		return nil, damagedBackup(backupBy, err)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != info.Writers {
		return b, damagedBackup(backupBy, errors.New("the content differs from what was backed up"))
	}
	return b, nil
}

// checkWriters verifies files.writers.
func checkWriters(fsys vfs.FS, dir string, info *repair.BackupInfo) error {
	b, err := writersIn(fsys, dir, info)
	if err != nil || b == nil {
		return err
	}
	err = parseWriters(b, info.Store, func(string, uint64) {}, func(writer.Writer) {})
	if err != nil {
		return damagedBackup(backupBy, err)
	}
	return nil
}

// writers are the writers of the documents of a store that is being restored.
type writers struct {
	table  writer.Table
	listed map[uint64]uint64 // position of the description of a file's writer, by the hash of the file's name
	by     map[uint64]uint64 // the same as listed, for the documents that are restored
}

// readWriters reads the backup's files.writers. If the file is damaged, the descriptions with a correct checksum are
// still used for documents in the log.
func (r *restore) readWriters() error {
	r.writers = &writers{listed: map[uint64]uint64{}, by: map[uint64]uint64{}}
	b, err := writersIn(r.from, r.s.Backup, &r.info)
	if err == nil && b != nil {
		err = parseWriters(b, r.info.Store, func(name string, at uint64) {
			r.writers.listed[xxhash.Sum64String(name)] = at
		}, r.writers.table.Add)
		if err != nil {
			err = damagedBackup(backupBy, err)
		}
	}
	if !r.tolerated(err) {
		return err
	}
	clear(r.writers.listed)
	for row := range bytes.Lines(b) {
		if w, ok := writer.ParseRow(row, r.info.Store); ok {
			r.writers.table.Add(w)
		}
	}
	r.noteDamage(backupBy, reason(err), "the writers of documents that are not in the log are unknown")
	return nil
}

// explain adds the writer that an entry of the log describes.
func (ws *writers) explain(e *wal.Entry) error {
	w, err := state.WriterIn(e)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	ws.table.Add(w)
	return nil
}

// keep records the writer of a restored file that files.writers of the backup names.
func (ws *writers) keep(name string) {
	key := xxhash.Sum64String(name)
	if at := ws.listed[key]; at != 0 {
		ws.by[key] = at
	}
}

// wrote records the writer of the file called name, whose version is in the log. number is the number of the writer in
// the entry of the version.
func (ws *writers) wrote(name string, number uint32, version uint64) {
	if w, ok := ws.table.Of(number, version); ok {
		ws.by[xxhash.Sum64String(name)] = w.Since
	}
}

// numbered returns the writers of the documents, numbered from 1 in the order of the log. numbers has the number
// of each file's writer, by the hash of the file's name.
func (ws *writers) numbered() (list []writer.Writer, numbers map[uint64]uint32) {
	used := map[uint64]uint32{} // by the position of the description
	for _, at := range ws.by {
		used[at] = 0
	}
	for _, w := range ws.table.All() {
		if _, ok := used[w.Since]; !ok {
			continue
		}
		w.Number = uint32(len(list)) + 1
		used[w.Since] = w.Number
		list = append(list, w)
	}
	numbers = map[uint64]uint32{}
	for key, at := range ws.by {
		if n := used[at]; n != 0 {
			numbers[key] = n
		}
	}
	return list, numbers
}
