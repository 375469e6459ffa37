package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
)

// takenID is the memory that says that a file of the reference server was taken
// over into this store; it has the lines that could not be read.
const takenID = "import:server-memory"

// Taken is what became of a file of the reference server.
type Taken struct {
	Path      string
	Before    bool // it was taken over by an earlier start, or by another process
	Entities  int
	Relations int
	Aside     []Aside // lines that could not be taken
	Changed   bool    // the file has changed since it was taken over: what came later is not here

	size int64 // of what was read
}

// Aside is a line that could not be taken. It is kept in the memory
// "import:server-memory".
type Aside struct {
	Line int
	Text string
	Why  string
}

// TakeOver brings the file of the reference server into a store, once: the file is
// read, and not touched. A file that is not there is nothing to take over. What the
// store has already under the same name stays as it is there. Several processes may
// do it at once, and any of them may be killed; until the last memory is in, the
// next start goes on.
func TakeOver(ctx context.Context, st *varve.Store, path string, now time.Time) (*Taken, error) {
	t := &Taken{Path: path}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("taking over %s: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: it is no file", varve.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("taking over %s: %w", path, err)
	}
	if done, err := st.Get(ctx, takenID); err == nil {
		t.Before, t.Changed = true, done.Metadata["source_bytes"] != float64(info.Size())
		return t, nil
	} else if !errors.Is(err, varve.ErrNotFound) {
		return nil, fmt.Errorf("taking over %s: %w", path, err)
	}
	lines, sum, err := t.read(f)
	if err != nil {
		return nil, fmt.Errorf("taking over %s: %w", path, err)
	}
	// Of several processes each may store a part; the times, and with them the order,
	// are the file's.
	if at := info.ModTime(); at.Before(now) {
		now = at
	}
	if err := t.store(ctx, st, lines, sum, now); err != nil {
		return nil, fmt.Errorf("taking over %s: %w", path, err)
	}
	return t, nil
}

// taken is a line of the file, or what became of several.
type taken struct {
	graph.Line
	number int // of the first
}

// read reads all lines, as the reference server does for each call. Entities of one
// name become one, of the first one's type, with the observations of all.
func (t *Taken) read(f io.Reader) (lines []taken, sum hash.Hash, err error) {
	sum = sha256.New()
	r := bufio.NewReaderSize(io.TeeReader(f, sum), 256<<10)
	at := map[string]int{}
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		t.size += int64(len(text))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		if bare := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))); len(bare) > 0 {
			line, perr := graph.ParseLine(bare)
			if perr == nil && !t.merge(&lines, at, taken{line, n}) {
				perr = errors.New("another entity of this name, with another type or other members, comes before it; its observations were added to that one")
			}
			if perr != nil {
				t.aside(n, bare, perr)
			}
		}
		if err != nil {
			return lines, sum, nil
		}
	}
}

// asideText is how much is kept of one line.
const asideText = 64 << 10

func (t *Taken) aside(number int, line []byte, why error) {
	if len(line) > asideText {
		line, why = line[:asideText], fmt.Errorf("%w; this is its beginning, of %d bytes in all", why, len(line))
	}
	t.Aside = append(t.Aside, Aside{number, strings.ToValidUTF8(string(line), "\ufffd"), why.Error()})
}

// merge adds a line; false where something of it finds no place.
func (t *Taken) merge(lines *[]taken, at map[string]int, line taken) bool {
	id := line.ID()
	i, ok := at[id]
	if !ok {
		at[id] = len(*lines)
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

// A transaction takes so much.
const (
	takeLines = 1000
	takeBytes = 4 << 20
)

// store puts the lines, in transactions that hold only as long as nobody has
// finished: an entity that a client has deleted since must not come back. A line that
// cannot be a memory here does not keep the others out.
func (t *Taken) store(ctx context.Context, st *varve.Store, lines []taken, sum hash.Hash, now time.Time) error {
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
			size += lineSize(&lines[end].Line)
			end++
		}
		err := unfinished(func(tx *varve.Tx) error {
			for i := next; i < end; i++ {
				if _, err := create(tx, lines[i].Memory(now.Add(time.Duration(i)))); err != nil {
					return err
				}
			}
			return nil
		})
		switch {
		case err == nil && t.Before:
			return nil
		case err == nil:
			next, most = end, takeLines
		case !isLine(err):
			return err
		case end > next+1:
			most = (end - next) / 2 // which one is it?
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
		if room == 0 || !errors.Is(err, varve.ErrTooLarge) {
			return err
		}
	}
}

// isLine says that an error is about what a line says.
func isLine(err error) bool {
	return errors.Is(err, varve.ErrTooLarge) || errors.Is(err, varve.ErrInvalid)
}

func ptr[T any](v T) *T { return &v }

func lineSize(l *graph.Line) int {
	if l.Entity == nil {
		return 3 * (len(l.Relation.From) + len(l.Relation.To) + len(l.Relation.Type))
	}
	n := 3 * len(l.Entity.Name)
	for _, o := range l.Entity.Observations {
		n += 2 * len(o)
	}
	return n
}

// asideRoom is how much of lines that were kept aside the memory holds that says so.
const asideRoom = 1 << 20

// memory says what was done; unreadable lines are in it as far as there is room, so
// that they are not lost when the file goes.
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
		Content: fmt.Sprintf("%d entities and %d relations were taken over from %s; %d lines could not be", t.Entities, t.Relations, path, len(t.Aside)),
		Metadata: map[string]any{
			"category": "import", "source": path, "source_bytes": float64(t.size), "source_sha256": hex.EncodeToString(sum.Sum(nil)), "aside": aside,
		},
	}
}
