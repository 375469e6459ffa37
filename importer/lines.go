package importer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/memstore"
)

// lines reads JSONL from the stream, the single file, or every .jsonl file of a folder. A single
// file or a stream may also be one JSON document.
func (r *run) lines() error {
	if r.stream != nil {
		if err := r.valuesFrom(r.stream, r.name); err != nil {
			return err
		}
		return r.lacks()
	}
	names := []string{r.only}
	if r.only == "" {
		var err error
		if names, _, err = r.list("."); err != nil {
			return err
		}
	}
	for _, name := range names {
		var err error
		if ext := path.Ext(name); r.only == "" && ext != ".jsonl" && ext != ".ndjson" {
			err = r.problem(Problem{Path: name, Kind: KindNotMemory, Reason: "not a .jsonl file"})
		} else {
			err = r.valuesOf(name)
		}
		if err != nil {
			return err
		}
	}
	return r.lacks()
}

// linesOf yields a memory for each line. It reports an invalid line with its number, and reads the
// rest.
func (r *run) linesOf(src io.Reader, name string) error {
	in := bufio.NewReaderSize(src, 256<<10)
	if what := foreignFile(in); what != nil {
		return r.problem(Problem{Path: name, Kind: KindCorrupt, Reason: what.Error()})
	}
	session := sessionOf(name)
	for n := 1; ; n++ {
		line, err := r.line(in)
		at := fmt.Sprintf("%s:%d", name, n)
		switch {
		case r.ctx.Err() != nil:
			return r.ctx.Err()
		case errors.Is(err, errEndless):
			return r.problem(Problem{Path: at, Kind: KindTooLarge,
				Reason: fmt.Sprintf("the line has more than %d bytes; the lines after it were not read: correct the line and "+
					"import the file again", r.longest())})
		case errors.Is(err, errTooLarge):
			if err := r.problem(Problem{Path: at, Kind: KindTooLarge,
				Reason: fmt.Sprintf("the line has more than %d bytes", r.opts.MaxBytes)}); err != nil {
				return err
			}
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return r.problem(Problem{Path: at, Kind: KindUnread, Reason: err.Error()})
		}
		if bare := bytes.TrimSpace(bytes.TrimPrefix(line, bom)); len(bare) > 0 {
			if err := r.value(where{path: at, session: session, nth: n - 1}, bare); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// errEndless is the error of the method line for a line of more than run.longest() bytes.
var errEndless = errors.New("the line does not end")

// longest returns the maximum number of bytes that are skipped to find the end of a line. The limit is needed because
// a sparse file may have terabytes without a line break.
func (r *run) longest() int { return max(256<<20, 4*r.opts.MaxBytes) }

// line returns the next line, with its line break. It returns io.EOF together with the last line. If a line has
// more than opts.MaxBytes bytes, line skips the rest of this line and returns errTooLarge, so that the next call
// begins at the next line. If a line has more than r.longest() bytes, line returns errEndless.
func (r *run) line(src *bufio.Reader) ([]byte, error) {
	var long []byte
	over, skipped := false, 0
	for {
		part, err := src.ReadSlice('\n')
		if skipped += len(part); skipped > r.longest() {
			return nil, errEndless
		}
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		if len(long)+len(part) > r.opts.MaxBytes+1 {
			over, long = true, nil
		}
		if !over {
			long = append(long, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case over && (err == nil || errors.Is(err, io.EOF)):
			return nil, errTooLarge // the next call returns io.EOF
		default:
			return long, err
		}
	}
}

// yieldRecord yields what a record has: a memory or an assembly of Varve, or a line of a knowledge graph. If the
// record has none of these, yieldRecord reports a problem.
func (r *run) yieldRecord(found where, doc *object, line []byte, mends []string) error {
	at := found.path
	if !doc.content || !doc.idText {
		if l, err := graph.ParseLine(doc.text); err == nil {
			return r.graphLine(at, &l, line, mends)
		}
	}
	switch {
	case doc.isAssembly():
		if err := r.copies(at, doc); err != nil {
			return err
		}
		return r.group(at, doc, line, mends, group{id: contentID(doc.text),
			note: "the record had no id; the id was made from the content"})
	case !doc.content && !(doc.idText && doc.embedding):
		kind, why := whatIsThis(doc)
		return r.problem(Problem{Path: at, ID: doc.id, Kind: kind, Reason: why, LeftOut: true})
	case doc.deleted():
		return r.problem(Problem{Path: at, ID: doc.id, Kind: KindNotMemory,
			Reason: "not imported: the source has deleted this memory (state: deleted)"})
	}
	id, note := doc.id, ""
	if id == "" {
		id, note = contentID(doc.text), "the record had no id; the id was made from the content"
	}
	r.census.forms[JSONL]++
	taken, err := r.item(Item{ID: id, JSON: doc.withID(id), Path: at, Note: note, names: doc.names}, line)
	if err != nil || !taken || len(mends) == 0 {
		return err
	}
	return r.problem(Problem{Path: at, ID: id, Kind: KindMended, Reason: strings.Join(mends, "; "), Taken: true})
}

// graphLine yields an entity or a relation as the memory that represents it. loc is the file and the number of the
// line. The memory has no timestamp, so the order in which the caller stores the memories becomes the order of their
// creation.
func (r *run) graphLine(loc string, l *graph.Line, line []byte, mends []string) error {
	m := l.Memory(time.Time{})
	doc, err := m.Encode(memstore.Limits{MemoryBytes: 1 << 30, IDBytes: 1 << 20, Depth: 10_000, EmbeddingDim: 1})
	if err != nil {
		return r.problem(Problem{Path: loc, ID: m.ID, Kind: KindCorrupt, Reason: err.Error()})
	}
	r.census.forms[ServerMemory]++
	taken, err := r.item(Item{ID: m.ID, JSON: doc, Path: loc, names: []string{"metadata"}}, line)
	if err != nil || !taken || len(mends) == 0 {
		return err
	}
	return r.problem(Problem{Path: loc, ID: m.ID, Kind: KindMended, Reason: strings.Join(mends, "; "), Taken: true})
}

// contentID returns an id that is the same for the same object, regardless of white space and the
// order of its members. Numbers are compared as they are written: as float64, two integers beyond
// 2^53 could be equal.
func contentID(text []byte) string {
	val := jsontext.Value(bytes.Clone(text))
	if err := val.Format(jsontext.ReorderRawObjects(true)); err != nil {
		val = text
	}
	h := sha256.Sum256(val)
	return "jsonl-" + hex.EncodeToString(h[:16])
}
