package importer

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/memstore"
)

// Report says what became of every member, and of the files that are neither an
// item nor the subject of a problem.
type Report struct {
	Members []Member  `json:"members"`
	Files   []File    `json:"files"`
	Vectors []Vectors `json:"vectors"` // files of vectors that could be read
	Forms   []Form    `json:"forms"`   // what the records of a file of values were recognised as
}

// Form is how many records were recognised as of a format.
type Form struct {
	Format Format `json:"format"`
	Count  int    `json:"count"`
}

// Vectors is a file of vectors, and what became of its rows.
type Vectors struct {
	Path      string `json:"path"`
	Index     string `json:"index"` // IndexFlatIP or IndexFlatL2
	Dimension int    `json:"dimension"`
	Rows      int64  `json:"rows"`
	Same      int    `json:"same"`      // as the document has it
	Taken     int    `json:"taken"`     // by a document that had none
	Stale     int    `json:"stale"`     // the document has another one, which counts
	Unfit     int    `json:"unfit"`     // of another dimension than the document's embedding, or the others'
	Useless   int    `json:"useless"`   // all zero, or no finite numbers, and the document has none
	Unclaimed int    `json:"unclaimed"` // no document has the number
}

// Member is a member of the source's documents at their top level.
type Member struct {
	Of    string `json:"of"` // memory or assembly
	Name  string `json:"name"`
	Count int    `json:"count"` // documents that have it
	// what it is read as; "": kept where it stands, as a member that the store does not know
	As string `json:"as,omitempty"`
}

// File is a file that was read for information about others.
type File struct {
	Path string `json:"path"`
	What string `json:"what"` // became of it
}

// Report is that of the last run of All.
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
	as       string // in the item, where the importer has renamed it
}

func newCensus() census { return census{members: map[memberKey]int{}, forms: map[Format]int{}} }

func (c *census) file(path, what string) { c.files = append(c.files, File{path, what}) }

func (c *census) item(it *Item) {
	if it.names == nil {
		_ = members(it.JSON, func(name string, _ jsontext.Value) error { // it was made here
			it.names = append(it.names, name)
			return nil
		})
	}
	for _, name := range it.names {
		key := memberKey{assembly: it.Assembly, name: name}
		for before, after := range it.renamed {
			if after == name {
				key.name, key.as = before, after
			}
		}
		c.members[key]++
	}
	it.names, it.renamed = nil, nil
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
