package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"time"

	"github.com/varve-db/varve/internal/graph"
)

// The old server may still be running. For each call it truncates its file and writes the whole file again. A
// file that was read during that is read again, at most settleTries times, with settlePause between.
const (
	settleTries = 20
	settlePause = 50 * time.Millisecond
	// settleRecent is the age of a file below which a process may still be writing it.
	settleRecent = 5 * time.Second
)

// settled reads the file when no process is writing it. It returns the lines of the file, its hash and its modification
// time. It returns nothing if the file does not exist.
func (t *Taken) settled(ctx context.Context, now time.Time) (lines []taken, sum hash.Hash, at time.Time, err error) {
	for try := 1; ; try++ {
		f, info, err := source(t.Path)
		if err != nil || f == nil {
			*t = Taken{Path: t.Path}
			return nil, nil, at, err
		}
		at = info.ModTime()
		again := &Taken{Path: t.Path}
		var torn bool
		lines, sum, torn, err = again.read(f)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, nil, at, &SourceError{t.Path, err}
		}
		*t = *again
		after, err := os.Stat(t.Path)
		moved := err != nil || after.Size() != t.size || !after.ModTime().Equal(at)
		recent := now.Sub(at).Abs() < settleRecent
		if !moved && (!recent || t.size > 0 && !torn) || try == settleTries {
			return lines, sum, at, nil
		}
		pause := time.NewTimer(settlePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, nil, at, ctx.Err()
		}
	}
}

// taken is one line of the file, or several lines about the same entity merged into one.
type taken struct {
	graph.Line
	number int // number of the first line
	bytes  int // number of bytes of all lines
}

// read reads all lines of the file as the reference server does for each call. Entities with the same name are
// merged into one, with the type of the first one and the observations of all. torn reports whether the last
// line has no line feed and cannot be parsed: it may be incomplete.
func (t *Taken) read(f io.Reader) (lines []taken, sum hash.Hash, torn bool, err error) {
	sum = sha256.New()
	r := bufio.NewReaderSize(io.TeeReader(f, sum), 256<<10)
	at := map[string]int{}
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		t.size += int64(len(text))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, false, err
		}
		if bare := bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))); len(bare) > 0 {
			line, perr := graph.ParseLine(bare)
			torn = perr != nil && err != nil
			if perr == nil && !t.merge(&lines, at, taken{line, n, len(bare)}) {
				perr = errors.New("an earlier line has an entity of this name with another type or other members; the " +
					"observations were added to the earlier entity")
			}
			if perr != nil {
				t.aside(n, bare, perr)
			}
		}
		if err != nil {
			return lines, sum, torn, nil
		}
	}
}
