package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/internal/sniff"
)

// A file of values is lines of JSON, or one JSON document: an array of records, one record, or an object
// that holds records (see elements). Each record says itself what it is: see recognise.

// otherFiles are files of llama_index beside the documents.
var otherFiles = map[string]string{
	"default__vector_store.json": "vectors: not imported; memctl reindex computes embeddings",
	"image__vector_store.json":   "vectors of images: not imported",
	"vector_store.json":          "vectors: not imported; memctl reindex computes embeddings",
	"index_store.json":           "which nodes the indexes have: not imported",
	"graph_store.json":           "a graph of llama_index: not imported",
	"property_graph_store.json":  "a graph of llama_index: not imported",
}

// values reads the files of values of a folder, or the one file.
func (r *run) values() error {
	names := []string{r.only}
	if r.only == "" {
		var err error
		if names, _, err = r.list("."); err != nil {
			return err
		}
	}
	for _, name := range names {
		if what, ok := otherFiles[path.Base(name)]; ok {
			r.census.file(name, what)
			continue
		}
		var err error
		switch ext := strings.ToLower(path.Ext(name)); {
		case r.only == "" && !slices.Contains([]string{".json", ".jsonl", ".ndjson"}, ext):
			err = r.problem(Problem{Path: name, Kind: KindNotMemory, Reason: "not a .json or .jsonl file"})
		default:
			err = r.valuesOf(name)
		}
		if err != nil {
			return err
		}
	}
	return r.lacks()
}

func (r *run) valuesOf(name string) error {
	f, err := r.open(name)
	if err != nil {
		return r.problem(Problem{Path: name, Kind: KindUnread, Reason: err.Error()})
	}
	defer f.Close()
	return r.valuesFrom(f, name)
}

func (r *run) valuesFrom(src io.Reader, name string) error {
	in := bufio.NewReaderSize(src, headBytes)
	array, lines := shape(in, path.Ext(name))
	switch {
	case lines:
		return r.linesOf(in, name)
	case array:
		return r.array(in, name)
	}
	raw, err := io.ReadAll(io.LimitReader(in, int64(r.longestDocument())+1))
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case err != nil:
		return r.problem(Problem{Path: name, Kind: KindUnread, Reason: err.Error()})
	case len(raw) > r.longestDocument():
		return r.problem(Problem{Path: name, Kind: KindTooLarge, Reason: fmt.Sprintf("the document has more than %d bytes: write its records as lines or as an array", r.longestDocument())})
	}
	return r.value(where{path: name, session: sessionOf(name)}, bytes.TrimSpace(raw))
}

// longestDocument is how long a document may be that is read as a whole, because it is no array.
func (r *run) longestDocument() int { return 4 * r.opts.MaxBytes }

// headBytes is how much of a file shape looks at.
const headBytes = 256 << 10

// shape looks at the beginning of a file: whether it is an array, and whether it is lines of JSON. What ends on the
// first line, with more behind it, is a line, and so is everything else where another line is an object. It
// waits for no more than the first line where that is enough: a stream may be slow.
func shape(in *bufio.Reader, ext string) (array, lines bool) {
	if slices.Contains([]string{".jsonl", ".ndjson"}, strings.ToLower(ext)) {
		return false, true
	}
	first, more := firstLine(in)
	switch whole := jsontext.Value(first).IsValid(lax...); {
	case len(first) == 0, first[0] != '{' && first[0] != '[', first[0] == '{' && whole:
		return false, true
	case first[0] == '[' && whole && more:
		head, _ := in.Peek(headBytes)
		another := len(bytes.TrimSpace(afterLine(head))) > 0
		return !another, another
	case first[0] == '[':
		return true, false
	}
	head, _ := in.Peek(headBytes)
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 2 && line[0] == '{' && line[len(line)-1] == '}' && jsontext.Value(line).IsValid(lax...) {
			return false, true
		}
	}
	return false, false
}

// firstLine returns the first line that has something, without the white space around it, and whether it ends.
func firstLine(in *bufio.Reader) (line []byte, more bool) {
	for n := 512; ; n = min(2*n, headBytes) {
		head, err := in.Peek(n)
		text := bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n")
		line, _, more = bytes.Cut(text, []byte("\n"))
		if more || err != nil || n == headBytes {
			return bytes.TrimSpace(line), more
		}
	}
}

// afterLine returns what is behind the first line that has something.
func afterLine(head []byte) []byte {
	_, rest, _ := bytes.Cut(bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n"), []byte("\n"))
	return rest
}

// array reads the elements of an array one after the other.
func (r *run) array(src io.Reader, name string) error {
	in := newFiniteReader(src)
	dec := jsontext.NewDecoder(in, lax...)
	session := sessionOf(name)
	_, err := dec.ReadToken()
	n := 0
	for ; err == nil && dec.PeekKind() != ']' && dec.PeekKind() != 0; n++ {
		var v jsontext.Value
		if v, err = dec.ReadValue(); err != nil {
			break
		}
		at := where{path: fmt.Sprintf("%s[%d]", name, n), session: session, nth: n}
		if len(v) > r.opts.MaxBytes {
			err := r.problem(Problem{Path: at.path, Kind: KindTooLarge, Reason: fmt.Sprintf("the element has more than %d bytes", r.opts.MaxBytes)})
			if err != nil {
				return err
			}
			continue
		}
		if err := r.value(at, v.Clone()); err != nil {
			return err
		}
	}
	if err == nil {
		_, err = dec.ReadToken()
	}
	if err == nil {
		if _, err = dec.ReadToken(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = fmt.Errorf("more data follows the array at byte %d", dec.InputOffset())
		}
	}
	switch {
	case err == nil && n == 0:
		return r.problem(Problem{Path: name, Kind: KindNotMemory, Reason: "an empty array"})
	case err == nil && in.found > 0:
		return r.problem(Problem{Path: name, Kind: KindMended, Reason: "NaN or Infinity, which are not JSON, became null", Taken: true})
	case err == nil:
		return nil
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case isSyntax(err), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return r.problem(Problem{Path: name, Kind: KindCorrupt, Reason: fmt.Sprintf("%v; the %d elements before that were read", clip(err), n)})
	}
	return r.problem(Problem{Path: name, Kind: KindUnread, Reason: err.Error()})
}

// value reads one value: a record, or several.
func (r *run) value(at where, raw []byte) error {
	doc, mends, err := parse(raw)
	if err != nil {
		if many, ok := elements(raw); ok {
			return r.each(at, many)
		}
		return r.problem(Problem{Path: at.path, Kind: KindCorrupt, Reason: err.Error()})
	}
	if !doc.content || !doc.idText {
		if many, ok := elements(doc.text); ok {
			return r.each(at, many)
		}
	}
	return r.one(at, doc, raw, mends)
}

// element is one of the records that an object or array holds.
type element struct {
	name    string // where it is in the value
	session string // of a conversation: its name in the file
	val     jsontext.Value
	nth     int
}

func (r *run) each(at where, many []element) error {
	for _, e := range many {
		inner := where{path: at.path + e.name, session: at.session, nth: e.nth}
		switch {
		case e.session != "":
			inner.session = e.session
		case at.nth > 0: // one of several conversations of a file
			inner.session = fmt.Sprintf("%s-%d", at.session, at.nth+1)
		}
		if err := r.value(inner, e.val); err != nil {
			return err
		}
	}
	return nil
}

// elements returns the records that a value holds.
//
//	[…]                                         an array of records
//	{"results":[…]}                             mem0: what get_all and search return
//	{"memories":[…]}, {"messages":[…]}          lists of memories, or a conversation
//	{"docstore/data":{id:{…}},…}                llama_index: docstore.json
//	{"store":{key:[…]},"class_name":…}          llama_index: a chat store, one conversation per key
//	{id:{"id","vector","text","metadata"},…}    LangChain: InMemoryVectorStore.dump
//
// ok is false for a value that holds none, or that is a record itself.
func elements(raw []byte) (many []element, ok bool) {
	list := func(name, session string, v jsontext.Value) {
		n := 0
		_ = eachElement(v, func(e jsontext.Value) error {
			many = append(many, element{name: fmt.Sprintf("%s[%d]", name, n), session: session, val: e, nth: n})
			n++
			return nil
		})
		ok = ok || n > 0
	}
	text := bytes.TrimLeft(raw, " \t\r\n")
	if len(text) > 0 && text[0] == '[' {
		if jsontext.Value(bytes.TrimSpace(text)).IsValid(lax...) {
			list("", "", jsontext.Value(text))
		}
		return many, ok
	}
	f := fieldsOf(text)
	held := func(name string, v jsontext.Value) {
		if v.Kind() != '{' {
			return
		}
		_ = members(v, func(id string, e jsontext.Value) error {
			many, ok = append(many, element{name: "#" + id, val: e.Clone()}), true
			return nil
		}, lax...)
	}
	switch {
	case f.kind("docstore/data") != 0:
		held("docstore/data", f.by["docstore/data"])
		return many, true
	case f.kind("store") == '{' && (f.kind("class_name") == '"' || len(f.list) == 1):
		_ = members(f.by["store"], func(key string, v jsontext.Value) error {
			list("#"+key, key, v.Clone())
			return nil
		}, lax...)
		return many, true
	case f.kind("results") == '[':
		list(".results", "", f.by["results"])
		return many, true
	case f.kind("memories") == '[' && f.kind("assembly_id") == 0:
		list(".memories", "", f.by["memories"])
		return many, ok
	case f.kind("messages") == '[' && f.kind("content") == 0:
		list(".messages", f.text("session_id"), f.by["messages"])
		return many, ok
	case len(f.list) > 0 && allRows(f):
		held("", text)
	}
	return many, ok
}

// allRows reports whether each member is a row of an InMemoryVectorStore.
func allRows(f fields) bool {
	for _, m := range f.list {
		if m.val.Kind() != '{' {
			return false
		}
		row := fieldsOf(m.val)
		if row.kind("vector") != '[' || row.kind("text") != '"' {
			return false
		}
	}
	return true
}

// one yields a record, or says why it is none.
func (r *run) one(at where, doc *object, raw []byte, mends []string) error {
	if rec := recognise(doc); rec != nil {
		return r.foreign(at, rec, raw, mends)
	}
	return r.own(at, doc, raw, mends)
}

// namedMembers is how many members of an object a reason names.
const namedMembers = 8

// whatIsThis is why an object is no memory, and the kind of that reason.
func whatIsThis(doc *object) (Kind, string) {
	f := fieldsOf(doc.text)
	for _, name := range []string{"content", "text"} {
		switch k := f.kind(name); k {
		case 0:
		case '{', '[', '0', 't', 'f', 'n':
			return KindContent, fmt.Sprintf("%s is %s, not a string", name, kindName(k))
		}
	}
	names := slices.Clone(doc.names)
	if len(names) == 0 {
		return KindNotMemory, "an empty object"
	}
	more := ""
	if len(names) > namedMembers {
		names, more = names[:namedMembers], ", …"
	}
	return KindNotMemory, "a JSON object without content, in no known form; its members are " + strings.Join(names, ", ") + more
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "a boolean"
}

// foreignFile names what a file is that is no text, in the error of Detect and of a run.
func foreignFile(in *bufio.Reader) error {
	head, _ := in.Peek(sniff.Longest)
	return sniff.Foreign(head)
}
