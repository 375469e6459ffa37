package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strconv"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/memstore"
)

// mostFound is the maximum number of hits of a search that are exported.
const mostFound = 1000

// huge is the size limit for reading stored documents. It is far above all limits of a store, because a document may
// have been written when the limits were higher than now.
const huge = 1 << 30

// exported is the last line of an export of several documents. An export without this line is incomplete.
type exported struct {
	Exported int      `json:"exported"`
	Notes    int      `json:"notes"`   // number of hits that are notes, which are not exported
	More     bool     `json:"more"`    // the search has further hits
	Unread   []string `json:"unread"`  // errors of documents that could not be read: the first ones
	Missing  int      `json:"missing"` // number of documents that could not be read
}

// export sends the content of a view as a file. A memory or an assembly is one line of JSON, a note is sent unchanged,
// and a list is lines of JSON that memctl import can read. The script of the page saves the file.
func (p *Page) export(w http.ResponseWriter, hr *http.Request) {
	r, ok := p.request(w, hr)
	if !ok {
		return
	}
	err := p.use(r.ctx, false, func(st *varve.Store) error {
		r.st = st
		if err := parse(hr); err != nil {
			return err
		}
		switch r.get("of") {
		case "memory":
			return exportMemory(w, r)
		case "assembly":
			return exportAssembly(w, r)
		case "note":
			return exportNote(w, r)
		}
		return p.exportList(w, r)
	})
	if err != nil {
		v := failed(err)
		w.Header().Set("Varve-Error", errorHeader(v))
		p.write(w, r, v)
	}
}

// fileNamed sets the headers that tell the script to save the answer as a file with this name.
func fileNamed(w http.ResponseWriter, name string) {
	w.Header().Set("Varve-File", url.PathEscape(name))
	w.Header().Set("Content-Type", "application/octet-stream")
}

// send answers with a file, and sets Content-Length to its size. If the connection breaks, the script then gets an
// error.
func send(w http.ResponseWriter, name string, b []byte) {
	fileNamed(w, name)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // a client that is gone reads nothing
}

func exportMemory(w http.ResponseWriter, r *request) error {
	doc, err := r.st.Admin().GetRaw(r.ctx, r.get("id"))
	if err != nil {
		return err
	}
	return sendLine(w, "memory.jsonl", doc)
}

func exportAssembly(w http.ResponseWriter, r *request) error {
	doc, err := r.st.Assemblies().GetRaw(r.ctx, r.get("id"))
	if err != nil {
		return err
	}
	return sendLine(w, "assembly.jsonl", doc)
}

func sendLine(w http.ResponseWriter, name string, doc []byte) error {
	var b bytes.Buffer
	if err := json.Compact(&b, doc); err != nil {
		return err
	}
	b.WriteByte('\n')
	send(w, name, b.Bytes())
	return nil
}

func exportNote(w http.ResponseWriter, r *request) error {
	n, err := r.st.Notes().Read(r.ctx, r.get("path"))
	if err != nil {
		return err
	}
	send(w, path.Base(n.Path), n.Content)
	return nil
}

// exportList sends all documents of a list, including those that are not on the current page of the list.
func (p *Page) exportList(w http.ResponseWriter, r *request) error {
	filters, err := p.filters(r)
	if err != nil {
		return err
	}
	x := &exporter{w: bufio.NewWriter(w), end: exported{Unread: []string{}}}
	switch {
	case r.get("kind") == "assembly":
		err = x.assemblies(w, r, filters)
	case searches(r):
		err = p.exportFound(w, x, r, filters)
	default:
		err = x.memories(w, r, filters)
	}
	if err != nil {
		return err
	}
	b, err := json.Marshal(x.end)
	if err != nil || r.ctx.Err() != nil {
		panic(http.ErrAbortHandler) // the export is incomplete: the answer must not end as if it were not
	}
	x.line(b)
	_ = x.w.Flush() // a client that is gone reads nothing
	return nil
}

// exporter writes the lines of an export and counts the documents.
type exporter struct {
	w   *bufio.Writer
	end exported
}

func (x *exporter) line(b []byte) {
	_, _ = x.w.Write(b)
	_ = x.w.WriteByte('\n') // an error of a bufio.Writer stays until Flush
}

// document writes a document as one line. If err is not nil, the document could not be read, and document only records
// err.
func (x *exporter) document(doc []byte, err error) {
	var b bytes.Buffer
	if err == nil {
		err = json.Compact(&b, doc)
	}
	if err != nil {
		if x.end.Missing++; len(x.end.Unread) < MostRows {
			x.end.Unread = append(x.end.Unread, human.Head(err.Error(), mostError))
		}
		return
	}
	x.line(b.Bytes())
	x.end.Exported++
}

func encodedMemory(m *varve.Memory) ([]byte, error) {
	return m.Encode(memstore.Limits{MemoryBytes: huge, IDBytes: huge, Depth: huge, EmbeddingDim: huge})
}

func (x *exporter) memories(w http.ResponseWriter, r *request, filters []varve.Filter) error {
	fileNamed(w, "memories.jsonl")
	for m, err := range r.st.Memories(r.ctx, filters...) {
		if r.ctx.Err() != nil || err != nil && fatal(err) {
			return x.ended(w, err)
		}
		var doc []byte
		if err == nil {
			doc, err = encodedMemory(&m)
		}
		x.document(doc, err)
	}
	return nil
}

func (x *exporter) assemblies(w http.ResponseWriter, r *request, filters []varve.Filter) error {
	fileNamed(w, "assemblies.jsonl")
	for a, err := range r.st.Assemblies().All(r.ctx, filters...) {
		if r.ctx.Err() != nil || err != nil && fatal(err) {
			return x.ended(w, err)
		}
		var doc []byte
		if err == nil {
			doc, err = a.Encode(assembly.Limits{AssemblyBytes: huge, IDBytes: huge, Depth: huge, EmbeddingDim: huge,
				Members: huge})
		}
		x.document(doc, err)
	}
	return nil
}

// ended handles an error that ends an export. If nothing was sent yet, ended returns the error. Otherwise it breaks the
// connection, so that the script does not save an incomplete export.
func (x *exporter) ended(w http.ResponseWriter, err error) error {
	if err == nil || x.end.Exported > 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Del("Varve-File")
	return err
}

// exportFound writes the memories that a search found, the best hit first.
func (p *Page) exportFound(w http.ResponseWriter, x *exporter, r *request, filters []varve.Filter) error {
	fileNamed(w, "found.jsonl")
	q, _, _ := p.query(r)
	q.Limit = mostFound + 1
	hits, err := r.st.Search(r.ctx, q, filters...)
	if err != nil && hits == nil {
		return x.ended(w, err)
	}
	if err != nil {
		x.document(nil, err)
	}
	x.end.More = len(hits) > mostFound
	for i := range hits[:min(len(hits), mostFound)] {
		h := &hits[i]
		if h.Note != nil {
			x.end.Notes++
			continue
		}
		x.document(r.st.Admin().GetRaw(r.ctx, h.ID))
	}
	return nil
}
