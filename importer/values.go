package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/internal/sniff"
)

// A file of values is lines of JSON, or one JSON document: an array of records, one record, or an
// object that contains records (see elements). The form of each record is recognized by its
// members: see recognise.

// otherFiles has descriptions of files of llama_index other than documents.
var otherFiles = map[string]string{
	"default__vector_store.json": "vectors: not imported; memctl reindex computes embeddings",
	"image__vector_store.json":   "vectors of images: not imported",
	"vector_store.json":          "vectors: not imported; memctl reindex computes embeddings",
	"index_store.json":           "the node lists of the indexes: not imported",
	"graph_store.json":           "a graph of llama_index: not imported",
	"property_graph_store.json":  "a graph of llama_index: not imported",
}

// values reads the JSON files of a folder, or the single file, record by record.
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
		return r.problem(Problem{Path: name, Kind: KindTooLarge,
			Reason: fmt.Sprintf("the document has more than %d bytes: write its records as lines or as an array",
				r.longestDocument())})
	}
	return r.value(where{path: name, session: sessionOf(name)}, bytes.TrimSpace(raw))
}

// longestDocument returns the maximum size of a document that is read as a whole because it is not
// an array.
func (r *run) longestDocument() int { return 4 * r.opts.MaxBytes }

// headBytes is the maximum number of bytes that the function shape examines.
const headBytes = 256 << 10

// shape examines the beginning of a file. array reports whether the file is one JSON array, and lines whether the file
// has one JSON value per line; both are false for any other file. ext is the extension of the file's name.
//
// A file with the extension .jsonl or .ndjson has lines. So has a file that begins with neither { nor [, and a file
// whose first line is a complete object, or a complete array followed by more lines. Any other file that begins with [
// is an array. Any other file that begins with { has lines if one of the examined lines is a complete object. shape
// reads only the first line if that is sufficient, because a stream may be slow.
func shape(src *bufio.Reader, ext string) (array, lines bool) {
	if slices.Contains([]string{".jsonl", ".ndjson"}, strings.ToLower(ext)) {
		return false, true
	}
	first, more := firstLine(src)
	switch whole := jsontext.Value(first).IsValid(lax...); {
	case len(first) == 0, first[0] != '{' && first[0] != '[', first[0] == '{' && whole:
		return false, true
	case first[0] == '[' && whole && more:
		head, _ := src.Peek(headBytes)
		another := len(bytes.TrimSpace(afterLine(head))) > 0
		return !another, another
	case first[0] == '[':
		return true, false
	}
	head, _ := src.Peek(headBytes)
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 2 && line[0] == '{' && line[len(line)-1] == '}' && jsontext.Value(line).IsValid(lax...) {
			return false, true
		}
	}
	return false, false
}

// firstLine returns the first line that is not empty, without white space around it. more reports whether a line
// break at the end of this line was read.
func firstLine(src *bufio.Reader) (line []byte, more bool) {
	for n := 512; ; n = min(2*n, headBytes) {
		head, err := src.Peek(n)
		text := bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n")
		line, _, more = bytes.Cut(text, []byte("\n"))
		if more || err != nil || n == headBytes {
			return bytes.TrimSpace(line), more
		}
	}
}

// afterLine returns the bytes after the first line that is not empty.
func afterLine(head []byte) []byte {
	_, rest, _ := bytes.Cut(bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n"), []byte("\n"))
	return rest
}

// array reads the elements of an array one after the other.
func (r *run) array(src io.Reader, name string) error {
	share := &boundedReader{src: src, most: r.longestDocument()}
	in := newFiniteReader(share)
	dec := jsontext.NewDecoder(in, lax...)
	session := sessionOf(name)
	_, err := dec.ReadToken()
	n := 0
	for ; err == nil && dec.PeekKind() != ']' && dec.PeekKind() != 0; n++ {
		var v jsontext.Value
		share.read = 0
		if v, err = dec.ReadValue(); err != nil {
			break
		}
		at := where{path: fmt.Sprintf("%s[%d]", name, n), session: session, nth: n}
		if len(v) > r.opts.MaxBytes {
			err := r.problem(Problem{Path: at.path, Kind: KindTooLarge,
				Reason: fmt.Sprintf("the element has more than %d bytes", r.opts.MaxBytes)})
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
		return r.problem(Problem{Path: name, Kind: KindMended, Reason: "NaN or Infinity, which are not JSON, became null",
			Taken: true})
	case err == nil:
		return nil
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case errors.Is(err, errEndless):
		return r.problem(Problem{Path: fmt.Sprintf("%s[%d]", name, n), Kind: KindTooLarge,
			Reason: fmt.Sprintf("the element has more than %d bytes; the elements after it were not read: correct the element "+
				"and import the file again", share.most)})
	case isSyntax(err), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return r.problem(Problem{Path: name, Kind: KindCorrupt,
			Reason: fmt.Sprintf("%v; the %d elements before that were read", clip(err), n)})
	}
	return r.problem(Problem{Path: name, Kind: KindUnread, Reason: err.Error()})
}

// boundedReader is a reader with a limit for one element of an array. Its Read returns errEndless if it has returned
// more bytes than the field most since the consumer set the field read to 0. Without the limit, the decoder would keep
// a whole element in memory, and an element in a stream may never end.
type boundedReader struct {
	src        io.Reader
	read, most int
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.read > b.most {
		return 0, errEndless
	}
	n, err := b.src.Read(p)
	b.read += n
	return n, err
}

// value yields the records in one JSON value: the value is a record, or contains several. loc is the location of
// the value.
func (r *run) value(loc where, raw []byte) error {
	doc, mends, err := parse(raw)
	if err != nil {
		if many, ok := elements(raw); ok {
			return r.yieldElements(loc, many)
		}
		return r.problem(Problem{Path: loc.path, Kind: KindCorrupt, Reason: err.Error()})
	}
	if !doc.content || !doc.idText {
		if many, ok := elements(doc.text); ok {
			return r.yieldElements(loc, many)
		}
	}
	return r.one(loc, doc, raw, mends)
}

// element is one of the records in an object or array.
type element struct {
	name    string // position of the record in the value
	session string // name of the conversation in the file
	val     jsontext.Value
	nth     int
}

func (r *run) yieldElements(loc where, many iter.Seq[element]) error {
	if loc.depth == nestMost {
		return r.problem(Problem{Path: loc.path, Kind: KindNotMemory,
			Reason: fmt.Sprintf("lists are nested more than %d deep", nestMost), LeftOut: true})
	}
	for e := range many {
		inner := where{path: loc.path + e.name, session: loc.session, nth: e.nth, depth: loc.depth + 1}
		switch {
		case e.session != "":
			inner.session = e.session
		case loc.nth > 0: // one of several conversations in a file
			inner.session = fmt.Sprintf("%s-%d", loc.session, loc.nth+1)
		}
		if err := r.value(inner, e.val); err != nil {
			return err
		}
	}
	return nil
}

// nestMost is the maximum number of lists that enclose a record. A record in a list of conversations has two: the list
// of the conversations, and the conversation. Each list is parsed as a whole before its elements are parsed. So
// without this limit, a file of deeply nested lists would take time quadratic in its size.
const nestMost = 4

// elements returns an iterator over the records in a value. The iterator yields one record at a time, because all
// records in memory at once would need many times the memory of the value.
//
//	[…]                                         an array of records
//	{"results":[…]}                             mem0: the results of get_all and search
//	{"memories":[…]}, {"messages":[…]}          lists of memories, or a conversation
//	{"docstore/data":{id:{…}},…}                llama_index: docstore.json
//	{"store":{key:[…]},"class_name":…}          llama_index: a chat store, one conversation per key
//	{id:{"id","vector","text","metadata"},…}    LangChain: InMemoryVectorStore.dump
//
// ok is false for a value that contains no records, or that is itself a record.
func elements(raw []byte) (records iter.Seq[element], ok bool) {
	text := bytes.TrimSpace(raw)
	if len(text) > 0 && text[0] == '[' {
		list := jsontext.Value(text)
		return elementsOf("", "", list), list.IsValid(lax...) && !isEmpty(list)
	}
	f := fieldsOf(text)
	switch {
	case f.kind("docstore/data") != 0:
		return valuesIn(f.by["docstore/data"]), true
	case f.kind("store") == '{' && (f.kind("class_name") == '"' || len(f.list) == 1):
		return conversations(f.by["store"]), true
	case f.kind("results") == '[':
		return elementsOf(".results", "", f.by["results"]), true
	case f.kind("memories") == '[' && f.kind("assembly_id") == 0:
		return elementsOf(".memories", "", f.by["memories"]), !isEmpty(f.by["memories"])
	case f.kind("messages") == '[' && f.kind("content") == 0:
		return elementsOf(".messages", f.text("session_id"), f.by["messages"]), !isEmpty(f.by["messages"])
	case len(f.list) > 0 && allRows(f):
		return valuesIn(text), true
	}
	return nil, false
}

// isEmpty reports whether an array has no element.
func isEmpty(array jsontext.Value) bool {
	rest := bytes.TrimLeft(array[1:], " \t\r\n")
	return len(rest) > 0 && rest[0] == ']'
}

// elementsOf returns the elements of an array.
func elementsOf(name, session string, array jsontext.Value) iter.Seq[element] {
	return func(yield func(element) bool) {
		n := 0
		_ = eachElement(array, func(e jsontext.Value) error {
			if !yield(element{name: fmt.Sprintf("%s[%d]", name, n), session: session, val: e, nth: n}) {
				return errStop
			}
			n++
			return nil
		})
	}
}

// valuesIn returns the members of an object; none if the value is not an object.
func valuesIn(object jsontext.Value) iter.Seq[element] {
	return func(yield func(element) bool) {
		if object.Kind() != '{' {
			return
		}
		_ = members(object, func(id string, e jsontext.Value) error {
			if !yield(element{name: "#" + id, val: e.Clone()}) {
				return errStop
			}
			return nil
		}, lax...)
	}
}

// conversations returns the messages of a chat store, which has a list of messages for each
// conversation.
func conversations(store jsontext.Value) iter.Seq[element] {
	return func(yield func(element) bool) {
		_ = members(store, func(key string, v jsontext.Value) error {
			for e := range elementsOf("#"+key, key, v) {
				if !yield(e) {
					return errStop
				}
			}
			return nil
		}, lax...)
	}
}

// allRows reports whether the value of every member of an object has the form of a row of LangChain's
// InMemoryVectorStore.
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

// one yields the memory or assembly in the record doc, or reports why the record has neither. loc is the location
// of the record.
func (r *run) one(loc where, doc *object, raw []byte, mends []string) error {
	if rec := recognise(doc); rec != nil {
		return r.foreign(loc, rec, raw, mends)
	}
	return r.yieldRecord(loc, doc, raw, mends)
}

// namedMembers is the maximum number of members of an object that a reason names.
const namedMembers = 8

// whatIsThis returns the reason for which an object is not a memory, and the kind of problem.
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
	return KindNotMemory, "a JSON object without content, in no known form; its members are " + strings.Join(names,
		", ") + more
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

// foreignFile returns an error that names the type of a file that is not text. It returns nil for text.
func foreignFile(src *bufio.Reader) error {
	head, _ := src.Peek(sniff.Longest)
	return sniff.Foreign(head)
}
