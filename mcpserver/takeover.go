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

// read reads all lines, as the reference server does for each call. Entities of one
// name become one, of the first one's type, with the observations of all.
func (t *Taken) read(f io.Reader) (lines []graph.Line, sum hash.Hash, err error) {
	sum = sha256.New()
	r := bufio.NewReaderSize(io.TeeReader(f, sum), 256<<10)
	at := map[string]int{}
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		if bare := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))); len(bare) > 0 {
			line, perr := graph.ParseLine(bare)
			if perr == nil && !t.merge(&lines, at, &line) {
				perr = errors.New("another entity of this name, with another type or other members, comes before it; its observations were added to that one")
			}
			if perr != nil {
				t.Aside = append(t.Aside, Aside{n, strings.ToValidUTF8(string(bare), "\ufffd"), perr.Error()})
			}
		}
		if err != nil {
			return lines, sum, nil
		}
	}
}

// merge adds a line; false where something of it finds no place.
func (t *Taken) merge(lines *[]graph.Line, at map[string]int, line *graph.Line) bool {
	id := line.ID()
	i, ok := at[id]
	if !ok {
		at[id] = len(*lines)
		*lines = append(*lines, *line)
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
// finished: an entity that a client has deleted since must not come back.
func (t *Taken) store(ctx context.Context, st *varve.Store, lines []graph.Line, sum hash.Hash, now time.Time) error {
	for next := 0; ; {
		end, size := next, 0
		for end < len(lines) && end-next < takeLines && size < takeBytes {
			size += lineSize(&lines[end])
			end++
		}
		err := st.Transact(ctx, func(tx *varve.Tx) error {
			_, err := tx.Get(takenID)
			if t.Before = err == nil; t.Before {
				return varve.ErrSkip
			}
			if !errors.Is(err, varve.ErrNotFound) {
				return err
			}
			for i := range lines[next:end] {
				if _, err := create(tx, lines[next+i].Memory(now.Add(time.Duration(next+i)))); err != nil {
					return err
				}
			}
			if end == len(lines) {
				_, err = tx.Put(t.memory(sum, now))
				return err
			}
			return nil
		})
		if err != nil || t.Before || end == len(lines) {
			return err
		}
		next = end
	}
}

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

// memory says what was done; unreadable lines are in it, so that nothing is lost
// when the file goes.
func (t *Taken) memory(sum hash.Hash, now time.Time) varve.Memory {
	size := int64(0)
	if info, err := os.Stat(t.Path); err == nil {
		size = info.Size()
	}
	path := t.Path
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if !utf8.ValidString(path) {
		path = strings.ToValidUTF8(path, "\ufffd")
	}
	aside := make([]any, len(t.Aside))
	for i, a := range t.Aside {
		aside[i] = map[string]any{"line": float64(a.Line), "text": a.Text, "reason": a.Why}
	}
	return varve.Memory{
		ID: takenID, Timestamp: now,
		Content: fmt.Sprintf("%d entities and %d relations were taken over from %s; %d lines could not be", t.Entities, t.Relations, path, len(t.Aside)),
		Metadata: map[string]any{
			"category": "import", "source": path, "source_bytes": float64(size), "source_sha256": hex.EncodeToString(sum.Sum(nil)), "aside": aside,
		},
	}
}
