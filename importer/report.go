package importer

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/memstore"
)

// Report describes what was done with every member of the documents, and with those files that are neither an item nor
// the subject of a problem.
type Report struct {
	Members []Member  `json:"members"`
	Files   []File    `json:"files"`
	Vectors []Vectors `json:"vectors"` // vector files that could be read
	Forms   []Form    `json:"forms"`   // formats that were recognized in files of values
}

// Form is a format and the number of records that were recognized in it.
type Form struct {
	Format Format `json:"format"`
	Count  int    `json:"count"`
}

// Vectors is a vector file, and what was done with its rows.
type Vectors struct {
	Path      string `json:"path"`
	Index     string `json:"index"` // IndexFlatIP or IndexFlatL2
	Dimension int    `json:"dimension"`
	Rows      int64  `json:"rows"`
	Same      int    `json:"same"`  // rows equal to the document's embedding
	Taken     int    `json:"taken"` // rows used for documents without an embedding
	Stale     int    `json:"stale"` // rows that differ from the document's embedding, which is used
	// rows of another dimension than the embedding of the document, or of the other documents
	Unfit int `json:"unfit"`
	// rows that are all zero or not finite and belong to documents without an embedding
	Useless   int `json:"useless"`
	Unclaimed int `json:"unclaimed"` // rows whose number belongs to no document
}

// Member is the name of a member at the top level of the source's documents.
type Member struct {
	Of    string `json:"of"` // memory or assembly
	Name  string `json:"name"`
	Count int    `json:"count"` // number of documents that have it
	// The name as which the member is read; "": it is kept unchanged, as a member that the store does not use.
	As string `json:"as,omitempty"`
}

// File is a file that has only information about other documents.
type File struct {
	Path string `json:"path"`
	What string `json:"what"` // what was done with it
}

// Report returns the report of the last run of All.
func (s *Source) Report() Report { return s.report }

type census struct {
	members map[memberKey]int
	files   []File
	vectors []Vectors
	forms   map[Format]int
}

type memberKey struct {
	assembly bool
	name     string
	as       string // the name of the member in the item, if the importer has renamed it
}

func newCensus() census { return census{members: map[memberKey]int{}, forms: map[Format]int{}} }

func (c *census) file(path, action string) { c.files = append(c.files, File{path, action}) }

func (c *census) item(found *Item) {
	if found.names == nil {
		// not known yet: the item was made by the importer
		_ = members(found.JSON, func(name string, _ jsontext.Value) error {
			found.names = append(found.names, name)
			return nil
		})
	}
	for _, name := range found.names {
		key := memberKey{assembly: found.Assembly, name: name}
		for before, after := range found.renamed {
			if after == name {
				key.name, key.as = before, after
			}
		}
		c.members[key]++
	}
	found.names, found.renamed = nil, nil
}

func (c *census) report() Report {
	r := Report{Members: []Member{}, Files: c.files, Vectors: c.vectors}
	for k, n := range c.members {
		m := Member{Of: "memory", Name: k.name, Count: n, As: cmp.Or(k.as, memstore.ReadAs(k.name))}
		if k.assembly {
			m.Of, m.As = "assembly", assembly.ReadAs(k.name)
		}
		r.Members = append(r.Members, m)
	}
	slices.SortFunc(r.Members, func(a, b Member) int {
		return cmp.Or(-cmp.Compare(a.Of, b.Of), cmp.Compare(a.Name, b.Name))
	})
	r.Forms = []Form{}
	for format, n := range c.forms {
		r.Forms = append(r.Forms, Form{format, n})
	}
	slices.SortFunc(r.Forms, func(a,
		b Form) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Format, b.Format))
	})
	if r.Files == nil {
		r.Files = []File{}
	}
	if r.Vectors == nil {
		r.Vectors = []Vectors{}
	}
	return r
}
