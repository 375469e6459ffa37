package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
)

// takenID is the id of the memory that records the import of the reference server's file into this store. This memory
// also contains the lines of the file that could not be imported.
const takenID = memstore.TakeOverID

// Taken is the result of importing a file of the reference server.
type Taken struct {
	Path      string
	Before    bool // the file was imported by an earlier start, or by another process
	Entities  int
	Relations int
	There     int     // number of entities and relations that the store already had, which are unchanged
	Aside     []Aside // lines that could not be imported
	Changed   bool    // the file has changed since it was imported: the later changes are not in the store

	size int64 // number of bytes read
}

// Aside is a line that could not be imported. It is kept in the memory "import:server-memory".
type Aside struct {
	Line int
	Text string
	Why  string
}

// TakeOver imports the file of the reference server into a store, once. It reads the file and does not change it. If
// the file is missing or empty, TakeOver imports nothing, and the next start checks again. Memories that the store
// already has under the same name are not changed. Several processes may call TakeOver at once, and any of them may be
// killed; until the last memory is stored, the next start continues. Changes to the file after the import are not an
// error.
func TakeOver(ctx context.Context, st *varve.Store, path string, now time.Time) (*Taken, error) {
	t := &Taken{Path: path}
	done, err := st.Get(ctx, takenID)
	if err == nil {
		t.Before, t.Changed = true, changed(&done, path)
		return t, nil
	}
	if !errors.Is(err, varve.ErrNotFound) {
		return nil, fmt.Errorf("taking over %s: %w", path, err)
	}
	lines, sum, at, err := t.settled(ctx, now)
	if err != nil {
		return nil, err
	}
	if len(lines)+len(t.Aside) == 0 {
		return t, nil
	}
	// Several processes may each store a part: the times, and with them the order, come from the
	// file.
	if at.Before(now) {
		now = at
	}
	if err := t.store(ctx, st, lines, sum, now); err != nil {
		return nil, fmt.Errorf("taking over %s: %w", path, err)
	}
	return t, nil
}

// CanTakeOver reports whether the file exists. If the file exists but cannot be imported, the error is a *SourceError.
// CanTakeOver is called before a store is created for the import.
func CanTakeOver(path string) (there bool, err error) {
	f, _, err := source(path)
	if err != nil || f == nil {
		return false, err
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return true, &SourceError{path, err}
	}
	return true, nil
}

// SourceError means that a file cannot be imported. Err matches varve.ErrInvalid if Path is not a regular file;
// otherwise it is a system error.
type SourceError struct {
	Path string
	Err  error
}

func (e *SourceError) Error() string { return "taking over " + e.Path + ": " + e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// source opens the file to import; the result is nil if the file does not exist.
func source(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path) // before opening: opening a pipe would block
	var f *os.File
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case errors.Is(err, syscall.ENOTDIR):
		err = fmt.Errorf("%w: a part of the path is not a folder", varve.ErrInvalid)
	case err == nil:
		if err = regular(info); err == nil {
			f, err = vfs.OpenGiven(path)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // removed meanwhile
	}
	if err != nil {
		return nil, nil, &SourceError{path, err}
	}
	return f, info, nil
}

func regular(info fs.FileInfo) error {
	what := "not a regular file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("%w: it is %s", varve.ErrInvalid, what)
}

// changed reports whether the file at path differs from the file that was imported. record is the memory that
// records the import. changed compares the size first, and reads the file only if its time has changed. It treats
// an unreadable file as unchanged.
func changed(record *varve.Memory, path string) bool {
	f, info, err := source(path)
	if err != nil || f == nil {
		return false
	}
	defer f.Close()
	if record.Metadata["source_bytes"] != float64(info.Size()) {
		return true
	}
	if record.Timestamp.Equal(info.ModTime()) {
		return false
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return err == nil && record.Metadata["source_sha256"] != hex.EncodeToString(sum.Sum(nil))
}

// asideText is the maximum number of bytes that are kept of one line that could not be imported.
const asideText = 64 << 10

func (t *Taken) aside(number int, line []byte, cause error) {
	if len(line) > asideText {
		line, cause = line[:asideText], fmt.Errorf("%w; only the beginning of %d bytes is kept", cause, len(line))
	}
	t.Aside = append(t.Aside, Aside{number, strings.ToValidUTF8(string(line), "\ufffd"), cause.Error()})
}

// merge adds line to lines. If lines already has a line about the same entity or relation, merge merges the two
// lines into one. byID has the index in lines of each entity and relation, by id; merge updates byID. It returns
// false if a part of line cannot be kept.
func (t *Taken) merge(lines *[]taken, byID map[string]int, line taken) bool {
	id := line.ID()
	i, ok := byID[id]
	if ok {
		(*lines)[i].bytes += line.bytes
	} else {
		byID[id] = len(*lines)
		*lines = append(*lines, line)
		if line.Entity != nil {
			t.Entities++
		} else {
			t.Relations++
		}
		return true
	}
	if line.Entity == nil {
		return len(line.Extra) == 0
	}
	first := (*lines)[i].Entity
	for _, o := range line.Entity.Observations {
		if !slices.Contains(first.Observations, o) {
			first.Observations = append(first.Observations, o)
		}
	}
	return line.Entity.Type == first.Type && len(line.Extra) == 0
}

// Limits of one transaction of the import.
const (
	takeLines = 1000
	takeBytes = 4 << 20
)

// store stores the lines, in transactions that take effect only as long as no process has finished
// the import: an entity that a client has deleted since must not return. A line that cannot become
// a memory does not prevent the others from being stored.
func (t *Taken) store(ctx context.Context, st *varve.Store, lines []taken, sum hash.Hash, now time.Time) error {
	has := func(tx *varve.Tx, id string) error { _, err := tx.Get(id); return err }
	unfinished := func(f func(tx *varve.Tx) error) error {
		return st.Transact(ctx, func(tx *varve.Tx) error {
			_, err := tx.Get(takenID)
			if t.Before = err == nil; t.Before {
				return varve.ErrSkip
			}
			if !errors.Is(err, varve.ErrNotFound) {
				return err
			}
			return f(tx)
		})
	}
	for next, most := 0, takeLines; next < len(lines); {
		end, size := next, 0
		for end < len(lines) && end-next < most && size < takeBytes {
			size += 2 * lines[end].bytes // each observation is in its memory twice
			end++
		}
		there := 0
		err := unfinished(func(tx *varve.Tx) error {
			there = 0
			for i := next; i < end; i++ {
				new, err := create(tx, has, lines[i].Memory(now.Add(time.Duration(i))))
				if err != nil {
					return err
				}
				if !new {
					there++
				}
			}
			return nil
		})
		switch {
		case err == nil && t.Before:
			return nil
		case err == nil:
			t.There += there
			next, most = end, takeLines
		case !isLine(err):
			return err
		case end > next+1:
			most = (end - next) / 2 // find the line that fails
		default:
			if lines[next].Entity != nil {
				t.Entities--
			} else {
				t.Relations--
			}
			text, _, aerr := graph.AppendLine(nil, ptr(lines[next].Memory(now)))
			if aerr != nil {
				return err
			}
			t.aside(lines[next].number, text, err)
			lines = slices.Delete(lines, next, next+1)
		}
	}
	slices.SortStableFunc(t.Aside, func(a, b Aside) int { return a.Line - b.Line })
	for room := asideRoom; ; room /= 2 {
		err := unfinished(func(tx *varve.Tx) error {
			_, err := tx.Put(t.memory(sum, now, room))
			return err
		})
		if room == 0 || !errors.Is(err, varve.ErrTooLarge) && !errors.Is(err, varve.ErrBatchTooLarge) {
			return err
		}
	}
}

// isLine reports whether err is caused by the content of one line, or by the total size of several lines. Then the
// import can continue with fewer lines at once or without the line.
func isLine(err error) bool {
	return errors.Is(err, varve.ErrTooLarge) || errors.Is(err, varve.ErrInvalid) || errors.Is(err, varve.ErrBatchTooLarge)
}

func ptr[T any](v T) *T { return &v }

// asideRoom is the maximum number of bytes that the memory takenID keeps of lines that could not be imported.
const asideRoom = 1 << 20

// memory returns the memory that records the import. It keeps up to room bytes of the lines that could not be
// read, so that they are not lost when the file is removed.
func (t *Taken) memory(sum hash.Hash, now time.Time, room int) varve.Memory {
	path := t.Path
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if !utf8.ValidString(path) {
		path = strings.ToValidUTF8(path, "\ufffd")
	}
	aside := []any{}
	for _, a := range t.Aside {
		if room -= len(a.Text) + len(a.Why) + len(`{"line":,"text":"","reason":""},`); room < 0 {
			break
		}
		aside = append(aside, map[string]any{"line": float64(a.Line), "text": a.Text, "reason": a.Why})
	}
	return varve.Memory{
		ID: takenID, Timestamp: now,
		Content: fmt.Sprintf("%d entities and %d relations were imported from %s; %d lines could not be imported", t.Entities,
			t.Relations, path, len(t.Aside)),
		Metadata: map[string]any{
			"category": "import", "source": path, "source_bytes": float64(t.size),
			"source_sha256": hex.EncodeToString(sum.Sum(nil)), "aside": aside,
		},
	}
}
