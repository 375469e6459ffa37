package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The forms of records of other systems. Members that are not named here stay in the document
// unchanged.
//
//	mem0          {"id","memory",?"metadata",?"created_at",?"run_id",…}     get, get_all, search
//	LangChain     {"type":"human"|"ai"|…,"data":{"content",…}}              messages_to_dict, message histories
//	              {"page_content",?"id","metadata"}                          a document
//	              {"id","vector","text","metadata"}                         a row of InMemoryVectorStore.dump
//	              {"lc":1,"type":"constructor","id":[…],"kwargs":{…}}       either, by dumpd
//	llama_index   {"__data__":{…},"__type__"}, {"id_","text"|"text_resource","metadata"|"extra_info",…}
//	              {"role","blocks":[{"block_type":"text","text"}]}          a message of a chat store
//	chat          {"role","content"}                                        a message
//
// The content of a message is a text, or a list of blocks. The texts of the blocks become the
// content; the list is kept in metadata.blocks if it has anything else.
//
// A message has no unique id ("ok" may occur twice), so its id is made from the file, the position
// in it, and the text.
const (
	Mem0       Format = "mem0"
	LangChain  Format = "langchain"
	LlamaIndex Format = "llama-index"
	Chat       Format = "chat"
)

// reading is a record of another system, converted to the parts of a memory.
type reading struct {
	form    Format
	id      string
	content string
	// the record is a message of a conversation: it has a position, and its own id and time are not used
	message   bool
	embedding jsontext.Value
	timestamp jsontext.Value
	metadata  []named
	rest      []named           // other members at the top level
	renamed   map[string]string // renamed members: name in the source → name in the memory
}

// fields are the members of an object, as a list and by name.
type fields struct {
	list []named
	by   map[string]jsontext.Value
}

func fieldsOf(text []byte) fields {
	f := fields{by: map[string]jsontext.Value{}}
	_ = members(text, func(name string, v jsontext.Value) error {
		v = v.Clone()
		f.list = append(f.list, named{name, v})
		f.by[name] = v
		return nil
	}, lax...)
	return f
}

func (f fields) kind(name string) jsontext.Kind {
	if v, ok := f.by[name]; ok {
		return v.Kind()
	}
	return 0
}

// text returns the value of the member name if the value is a string, and otherwise "".
func (f fields) text(name string) string {
	if f.kind(name) == '"' {
		return unquote(f.by[name])
	}
	return ""
}

// without returns the members whose names are not in names and whose values are not null. Empty strings in names are
// ignored.
func (f fields) without(names ...string) []named {
	var rest []named
	for _, m := range f.list {
		if (m.name == "" || !slices.Contains(names, m.name)) && m.val.Kind() != 'n' {
			rest = append(rest, m)
		}
	}
	return rest
}

// telling lists the names of members that indicate a record of another system.
var telling = []string{"lc", "__data__", "data", "page_content", "memory", "vector", "id_", "doc_id", "role", "type"}

// recognise converts a record of another system; it returns nil for a memory or an assembly of
// Varve, and for anything else.
func recognise(o *object) *reading {
	if !slices.ContainsFunc(o.names, func(name string) bool { return slices.Contains(telling, name) }) {
		return nil // so the values need not be examined
	}
	f := fieldsOf(o.text)
	switch {
	case f.kind("lc") != 0 && f.kind("kwargs") == '{':
		return readConstructor(f)
	case f.kind("__data__") != 0 && (f.kind("__data__") == '{' || f.kind("__data__") == '"'):
		return readNode(nodeData(f.by["__data__"]))
	case f.kind("data") == '{' && f.kind("type") == '"' && !o.content:
		return readLangMessage(f.text("type"), fieldsOf(f.by["data"]))
	case f.kind("page_content") == '"':
		return readLangDocument(f)
	case f.kind("memory") == '"' && !o.content:
		return readMem0(f)
	case f.kind("vector") == '[' && f.kind("text") == '"':
		r := &reading{form: LangChain, id: f.text("id"), content: f.text("text"), embedding: f.by["vector"],
			rest:    f.without("id", "vector", "text", "metadata"),
			renamed: map[string]string{"vector": "embedding"}}
		r.meta(f, "metadata")
		return r
	case f.kind("id_") == '"' || f.kind("doc_id") == '"' && f.kind("extra_info") != 0:
		return readNode(f)
	case f.kind("role") == '"' && (f.kind("blocks") == '[' || blocks(f.by["content"])):
		return readChat(f)
	case f.kind("role") == '"' && f.kind("content") == '"' && !o.idText:
		return readChat(f)
	case f.kind("type") == '"' && isMessageType(f.text("type")) && blocks(f.by["content"]):
		return readLangMessage(f.text("type"), f)
	}
	return nil
}

// meta adds to the metadata the members of the object that is the value of the member name. A value of another type is
// added itself, as a member with this name; null is ignored.
func (r *reading) meta(f fields, name string) {
	switch v := f.by[name]; f.kind(name) {
	case '{':
		r.metadata = append(r.metadata, fieldsOf(v).list...)
	case 0, 'n':
	default:
		r.metadata = append(r.metadata, named{name, v})
	}
}

// say adds a member to the metadata, unless the record has its own metadata of that name.
func (r *reading) say(name, value string) {
	if value != "" && !slices.ContainsFunc(r.metadata, func(m named) bool { return m.name == name }) {
		r.metadata = append(r.metadata, named{name, quote(value)})
	}
}

// setTimestamp sets the timestamp to the first of the named members that is a string or a number. It returns the
// name of that member, or "" if there is no such member.
func (r *reading) setTimestamp(f fields, names ...string) string {
	for _, name := range names {
		if v := f.by[name]; f.kind(name) == '"' || f.kind(name) == '0' {
			r.timestamp = v
			return name
		}
	}
	return ""
}

func readMem0(f fields) *reading {
	r := &reading{form: Mem0, id: idOf(f.by["id"]), content: f.text("memory"),
		renamed: map[string]string{"memory": "content"}}
	taken := r.setTimestamp(f, "timestamp", "created_at")
	if taken == "created_at" {
		taken = "" // the member is also kept under its own name
	}
	r.rest = f.without("id", "memory", "metadata", taken)
	r.meta(f, "metadata")
	r.say("session_id", f.text("run_id"))
	return r
}

func idOf(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		return unquote(v)
	case '0':
		return string(v)
	}
	return ""
}

// readConstructor converts a record written by dumpd, a function of LangChain. The last part of the record's id is the
// name of the class.
func readConstructor(f fields) *reading {
	kwargs := fieldsOf(f.by["kwargs"])
	if kwargs.kind("page_content") == '"' {
		return readLangDocument(kwargs)
	}
	if _, ok := kwargs.by["content"]; ok {
		kind := kwargs.text("type")
		if kind == "" {
			var class []string
			_ = eachElement(f.by["id"], func(v jsontext.Value) error {
				class = append(class, unquote(v))
				return nil
			})
			if len(class) > 0 {
				kind = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(class[len(class)-1], "Chunk"), "Message"))
			}
		}
		return readLangMessage(kind, kwargs)
	}
	return nil
}

func readLangDocument(f fields) *reading {
	r := &reading{form: LangChain, id: f.text("id"), content: f.text("page_content"),
		renamed: map[string]string{"page_content": "content"}}
	r.rest = f.without("id", "page_content", "metadata", "type", r.setTimestamp(f, "timestamp"))
	r.meta(f, "metadata")
	return r
}

func isMessageType(s string) bool {
	s = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(s, "Chunk"), "Message"))
	return slices.Contains([]string{"human", "ai", "system", "chat", "function", "tool", "generic", "developer", "remove",
		"user", "assistant"}, s)
}

func readLangMessage(kind string, f fields) *reading {
	content, ok := f.by["content"]
	if !ok {
		return nil
	}
	r := &reading{form: LangChain, message: true}
	if !r.setContent(content) {
		return nil
	}
	role := f.text("role")
	if role == "" {
		role = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(kind, "Chunk"), "Message"))
	}
	r.say("role", role)
	r.say("message_id", f.text("id"))
	for _, m := range f.without("content", "type", "id", "role") {
		if s := string(m.val); s != "{}" && s != "[]" {
			r.metadata = append(r.metadata, m)
		}
	}
	return r
}

// nodeData returns the members of the data of a llama_index node. v is the data: an object, or a string that contains
// an object as text.
func nodeData(v jsontext.Value) fields {
	if v.Kind() == '"' {
		v = jsontext.Value(unquote(v))
	}
	return fieldsOf(v)
}

func readNode(f fields) *reading {
	r := &reading{form: LlamaIndex, id: f.text("id_"), renamed: map[string]string{"id_": "id"}}
	if r.id == "" {
		r.id = f.text("doc_id")
	}
	drop := []string{"id_", "doc_id", "metadata", "extra_info", "embedding", "text", r.setTimestamp(f, "timestamp")}
	switch {
	case f.kind("text_resource") == '{':
		resource := fieldsOf(f.by["text_resource"])
		r.content = resource.text("text")
		if len(resource.without("text")) == 0 || len(resource.without("text", "mimetype", "embeddings", "path", "url")) == 0 {
			drop = append(drop, "text_resource")
		}
	case f.kind("text") == '"':
		r.content = f.text("text")
	default:
		return nil
	}
	if f.kind("embedding") == '[' {
		r.embedding = f.by["embedding"]
	}
	r.rest = f.without(drop...)
	r.meta(f, "metadata")
	r.meta(f, "extra_info")
	return r
}

func readChat(f fields) *reading {
	r := &reading{form: Chat, message: true}
	said := f.by["content"]
	if f.kind("blocks") == '[' {
		said, r.form = f.by["blocks"], LlamaIndex
	}
	if !r.setContent(said) {
		return nil
	}
	for _, m := range f.without("content", "blocks", "metadata", r.setTimestamp(f, "timestamp", "created_at")) {
		if s := string(m.val); s != "{}" && s != "[]" {
			r.metadata = append(r.metadata, m)
		}
	}
	r.meta(f, "metadata")
	return r
}

// blocks reports whether the content of a message is an array in which each element is a string or an object.
func blocks(v jsontext.Value) bool {
	if v.Kind() != '[' {
		return false
	}
	all := true
	_ = eachElement(v, func(e jsontext.Value) error {
		all = all && (e.Kind() == '"' || e.Kind() == '{')
		return nil
	})
	return all
}

// setContent sets the content of a message from v. If v is null, the content stays empty. setContent returns false
// if v is neither null, nor a text, nor a list of blocks.
func (r *reading) setContent(v jsontext.Value) bool {
	switch {
	case v.Kind() == '"':
		r.content = unquote(v)
		return true
	case v.Kind() == 'n':
		return true
	case !blocks(v):
		return false
	}
	var texts []string
	other := false
	_ = eachElement(v, func(e jsontext.Value) error {
		if e.Kind() == '"' {
			texts = append(texts, unquote(e))
			return nil
		}
		b := fieldsOf(e)
		if b.kind("text") == '"' {
			texts = append(texts, b.text("text"))
		} else {
			other = true
		}
		return nil
	})
	r.content = strings.Join(texts, "\n")
	if other {
		r.metadata = append(r.metadata, named{"blocks", v})
	}
	return true
}

// eachElement calls f for each element of the JSON array v.
func eachElement(v jsontext.Value, f func(e jsontext.Value) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v), lax...) // a Buffer, so that v is not copied
	if dec.PeekKind() != '[' {
		return nil
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' && dec.PeekKind() != 0 {
		e, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := f(e.Clone()); err != nil {
			return err
		}
	}
	return nil
}

// document returns the memory as JSON. id becomes the id of the memory.
func (r *reading) document(id string) []byte {
	out := member([]byte{'{'}, "id", quote(id))
	out = member(out, "content", quote(r.content))
	used := []string{"id", "content"}
	if r.embedding != nil {
		out, used = member(out, "embedding", r.embedding), append(used, "embedding")
	}
	if r.timestamp != nil {
		out, used = member(out, "timestamp", r.timestamp), append(used, "timestamp")
	}
	for _, m := range r.rest {
		if slices.Contains(used, m.name) { // such as content beside page_content: kept as metadata
			r.metadata = append(r.metadata, m)
		}
	}
	if len(r.metadata) > 0 {
		meta, names := []byte{'{'}, map[string]bool{}
		for _, m := range r.metadata {
			if !names[m.name] {
				names[m.name] = true
				meta = member(meta, m.name, clean(m.val))
			}
		}
		out, used = member(out, "metadata", append(meta, '}')), append(used, "metadata")
	}
	for _, m := range r.rest {
		if !slices.Contains(used, m.name) {
			out = member(out, m.name, clean(m.val))
			used = append(used, m.name)
		}
	}
	return append(out, '}')
}

// where is the position of a record: file and line or element, and the conversation.
type where struct {
	path    string // the file, with the line or element: file, file:3 or file[2]
	session string // name of a conversation, "" if the conversation has no name
	nth     int    // number of the message in the conversation, from 0
	depth   int    // number of lists that enclose the record: see nestMost
}

// foreign converts rec, a record in the format of another system, to a document, and yields the document. loc says
// where the record was found, and raw is its text. mends describes the errors in the text that were corrected; foreign
// reports them as a Problem.
func (r *run) foreign(loc where, rec *reading, raw []byte, mends []string) error {
	id, note := rec.id, ""
	switch {
	case rec.message:
		rec.say("session_id", loc.session)
		id = messageID(loc.session, loc.nth, rec.content)
	case id == "":
		id, note = contentID(raw), "the record had no id; the id was made from the content"
	}
	r.census.forms[rec.form]++
	taken, err := r.item(Item{ID: id, JSON: rec.document(id), Path: loc.path, Note: note, renamed: rec.renamed}, raw)
	if err != nil || !taken || len(mends) == 0 {
		return err
	}
	return r.problem(Problem{Path: loc.path, ID: id, Kind: KindMended, Reason: strings.Join(mends, "; "), Taken: true})
}

func messageID(session string, nth int, content string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%d:%s:%d:%s", len(session), session, nth, content))
	return "chat-" + hex.EncodeToString(h[:16])
}

// sessionOf returns the name of the conversation in a file: the name of the file without folder and extension.
func sessionOf(name string) string {
	base := path.Base(name)
	return strings.TrimSuffix(base, path.Ext(base))
}
