package notes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/note"
)

// Match is a line of a note that Grep found.
type Match struct {
	Path string
	Line int    // line number; the first line is 1
	Text string // text of the line, without the line break
}

// Grep reads notes in batches of at most grepNotes notes. A batch of more than one note has at most grepBytes bytes,
// because all matching lines of a batch are in memory at the same time.
const (
	grepNotes = 64
	grepBytes = 4 << 20
)

// Grep yields the lines of the notes in a folder for which matches returns true, in the order of the paths.
// Notes that are not text are skipped. Several goroutines may call matches at the same time.
func (ns *Notes) Grep(ctx context.Context, folder string, matches func(line []byte) bool) iter.Seq2[Match, error] {
	return engine.Reading(ctx, ns.engine, func(yield func(Match, error) bool) {
		if err := checkFolder(folder); err != nil {
			yield(Match{}, err)
			return
		}
		g := newGrep(ns, matches)
		give := func() bool {
			for _, n := range g.read(ctx) {
				for _, m := range n.lines {
					if !yield(m, nil) {
						return false
					}
				}
				if n.err != nil {
					yield(Match{}, failed(n.path, n.err))
					return false
				}
			}
			return true
		}
		if folder != "" { // a note may have this path
			g.add(listing{path: folder})
		}
		for l, err := range ns.listings(ctx, folderPrefix(folder), "") {
			if err != nil {
				yield(Match{}, err)
				return
			}
			if g.full(l.note.Line.Size) && !give() {
				return
			}
			g.add(l)
		}
		give()
	})
}

// grep reads batches of notes with several goroutines.
type grep struct {
	ns      *Notes
	matches func(line []byte) bool
	batch   []grepped
	bytes   int64
	bufs    [][]byte // one for each goroutine
}

// grepped is a note of a batch, with its matching lines.
type grepped struct {
	listing
	lines []Match
	err   error
}

func newGrep(ns *Notes, matches func(line []byte) bool) *grep {
	return &grep{ns: ns, matches: matches, bufs: make([][]byte, ns.engine.Env().Readers())}
}

func (g *grep) add(l listing) {
	g.batch = append(g.batch, grepped{listing: l})
	g.bytes += l.note.Line.Size
}

// full reports whether the batch must be read before a note of the given size is added.
func (g *grep) full(size int64) bool {
	return len(g.batch) == grepNotes || len(g.batch) > 0 && g.bytes+size > grepBytes
}

// read reads the notes of the batch, and returns them with their matching lines. The result is valid until the next
// call of add.
func (g *grep) read(ctx context.Context) []grepped {
	batch := g.batch
	var next atomic.Int64
	some := func(buf *[]byte) {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(batch) {
				return
			}
			n := &batch[i]
			var doc []byte
			if n.err = ctx.Err(); n.err == nil {
				doc, n.err = g.ns.contentOf(ctx, &n.listing, buf)
			}
			if n.err == nil {
				n.lines = matching(n.path, doc, g.matches)
			}
		}
	}
	if n := min(len(g.bufs), len(batch)); n > 1 {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { some(&g.bufs[i]) })
		}
		wg.Wait()
	} else {
		some(&g.bufs[0])
	}
	g.batch, g.bytes = g.batch[:0], 0
	return batch
}

// matching returns the lines of a note for which matches returns true. If the note is not text, it returns none.
func matching(path string, doc []byte, matches func(line []byte) bool) (list []Match) {
	if !note.IsText(doc) {
		return nil
	}
	n := 0
	for line := range bytes.Lines(doc) {
		n++
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if matches(line) {
			list = append(list, Match{path, n, string(line)})
		}
	}
	return list
}

// contentOf returns the content of the note l, or nil if the note does not exist any more. The content may be in buf,
// and is valid until the next call.
//
// If the file of the note has the size, time and hash that l has, the content is that of the file. To compare these
// takes a fraction of the system calls of load, and no look-up in the index. Otherwise contentOf loads the note: if a
// user has edited its file, the edit is adopted first.
func (ns *Notes) contentOf(ctx context.Context, l *listing, buf *[]byte) ([]byte, error) {
	line := &l.note.Line
	switch {
	case l.note.LSN == 0:
	case l.inLog && l.note.LSN < ns.engine.Log().Flushed():
		v, err := ns.find(ctx, l.path) // find compares the file
		return v.Doc, err
	case !l.inLog:
		doc, info, err := ns.kind.Glance(ns.kind.FileName(l.path), *buf, line.Size)
		*buf = doc[:0]
		if err == nil && engine.Matches(line, info) && sha256.Sum256(doc) == line.ContentHash {
			return doc, nil
		}
	}
	s, err := ns.load(ctx, l.path)
	if err != nil || !s.exists(ns.now()) {
		return nil, err
	}
	return s.note.Doc, nil
}
