package vector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/record"
)

// Kind is the kind of document to which a vector belongs. Each kind has its own section in the mapping files.
type Kind int

// The kinds of documents that may have vectors.
const (
	Memories Kind = iota
	Assemblies
	kinds
)

// Names of the vector files and their folder, in a store's folder.
const (
	Folder      = "vector_index"
	baseFAISS   = Folder + "/memory_vectors.faiss"
	baseNext    = Folder + "/memory_vectors.next.faiss"
	deltaFAISS  = Folder + "/memory_vectors.delta.faiss"
	deltaNext   = Folder + "/memory_vectors.delta.next.faiss"
	mappingName = Folder + "/mapping"

	// BaseMapping and DeltaMapping are the names of the mapping files. These tables list the key and the FAISS id of
	// each vector. A vector exists only if one of them lists it.
	BaseMapping  = mappingName + ".json"
	DeltaMapping = mappingName + ".delta.json"
)

// Schema returns the schema of mapping.json and mapping.delta.json for package index/table.
func Schema() *table.Schema {
	return &table.Schema{Name: mappingName, Sections: []table.Section{
		{Name: "ids", Count: "vector_count", Dead: isDead, Valid: validID},
		{Name: record.AssemblyFolder, Count: "assembly_vector_count", Dead: isDead, Valid: validID},
	}}
}

var (
	deadLine = []byte("0")
	errID    = errors.New("the id of a vector must be an int64 greater than 0, or 0 in a delta")
)

func isDead(value []byte) bool { return len(value) == 1 && value[0] == '0' }

func validID(value []byte) error {
	if isDead(value) {
		return nil
	}
	_, err := parseID(value)
	return err
}

// parseID parses the value of a line in a mapping file as the FAISS id of a vector. It returns an error for the value
// 0, which records a deletion.
func parseID(value []byte) (int64, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n <= 0 || value[0] == '0' || value[0] == '+' {
		return 0, fmt.Errorf("%w, not %.30q", errID, value)
	}
	return n, nil
}

// extra describes the vectors and the FAISS file that belong to a mapping file. It is stored in the metadata of the
// mapping file.
type extra struct {
	Chain     string    `json:"chain"`
	Metric    string    `json:"metric"`
	Dimension int       `json:"dimension"`
	Model     string    `json:"model,omitempty"`
	FAISS     faissFile `json:"faiss"`
}

type faissFile struct {
	Size   int64  `json:"size"`
	Mtime  int64  `json:"mtime"`
	Blocks string `json:"blocks"`
}

func parseExtra(b []byte) (extra, shape, error) {
	var x extra
	if err := json.Unmarshal(b, &x); err != nil {
		return x, shape{}, fmt.Errorf("the description of the FAISS file in the metadata of the mapping is invalid: %w",
			err)
	}
	m, err := ParseMetric(x.Metric)
	if err != nil {
		return x, shape{}, err
	}
	if x.Dimension < 1 || x.Dimension > maxDim {
		return x, shape{}, fmt.Errorf("invalid number of dimensions: %d", x.Dimension)
	}
	if n := (x.FAISS.Size + blockSize - 1) / blockSize; x.FAISS.Size < 0 || int64(len(x.FAISS.Blocks)) != 16*n {
		return x, shape{},
			fmt.Errorf("the block hashes of a FAISS file of %d bytes must have %d hex digits, but have %d",
				x.FAISS.Size, 16*n, len(x.FAISS.Blocks))
	}
	return x, shape{metric: m, dim: x.Dimension}, nil
}

// assemblyPrefix begins the keys of assemblies in a mapping file that another system wrote. Such a file has the keys
// of memories and assemblies in one JSON object.
const assemblyPrefix = "asm:"

// ReadMapping parses a mapping from document ids to numbers of vectors. It accepts both existing formats, and calls add
// for each document, in the order of the file:
//
//	{"<id>":<int64>,…}                                       flat, of other systems
//	{"ids":{"<id>":<int64>,…},"assemblies":{…},"metadata":…} Varve's own
//
// In the flat format, the id of an assembly has the prefix "asm:". The numbers of the flat format are either FAISS ids
// or ordinals; only the name of the file shows which. If a number is not an int64, add gets the number 0 and a
// *errs.FieldError that names the id. If add returns an error, ReadMapping stops and returns this error. If the file is
// not a valid mapping, ReadMapping calls add for the documents before the fault and returns an error that matches
// errs.ErrInvalid.
func ReadMapping(r io.Reader, add func(kind Kind, id string, number int64, err error) error) error {
	d := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	p := mappingReader{d: d, add: add}
	if err := p.object(p.top); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return p.invalid(errors.New("unexpected data after the JSON object"))
	}
	return nil
}

type mappingReader struct {
	d   *jsontext.Decoder
	add func(Kind, string, int64, error) error
}

func (p *mappingReader) invalid(err error) error {
	return fmt.Errorf("%w: not a mapping of ids to vectors: byte %d: %w", errs.ErrInvalid, p.d.InputOffset(), err)
}

// object parses a JSON object and calls member with the name of each member. The function member must read the value.
func (p *mappingReader) object(member func(name string) error) error {
	if k := p.d.PeekKind(); k != '{' {
		_, err := p.d.ReadToken()
		if err == nil {
			err = fmt.Errorf("the file has %v where a JSON object is expected", k)
		}
		return p.invalid(err)
	}
	if _, err := p.d.ReadToken(); err != nil {
		return p.invalid(err)
	}
	for p.d.PeekKind() == '"' {
		t, err := p.d.ReadToken()
		if err != nil {
			return p.invalid(err)
		}
		if err := member(t.String()); err != nil {
			return err
		}
	}
	if _, err := p.d.ReadToken(); err != nil { // the end of the object, or an unexpected token
		return p.invalid(err)
	}
	return nil
}

func (p *mappingReader) top(name string) error {
	if p.d.PeekKind() == '{' {
		switch name {
		case "ids":
			return p.object(func(id string) error { return p.pair(Memories, id) })
		case record.AssemblyFolder:
			return p.object(func(id string) error { return p.pair(Assemblies, id) })
		}
		if err := p.d.SkipValue(); err != nil {
			return p.invalid(err)
		}
		return nil
	}
	if name == "end" && p.d.PeekKind() == '"' { // the last member of Varve's format
		if err := p.d.SkipValue(); err != nil {
			return p.invalid(err)
		}
		return nil
	}
	if id, ok := strings.CutPrefix(name, assemblyPrefix); ok {
		return p.pair(Assemblies, id)
	}
	return p.pair(Memories, name)
}

func (p *mappingReader) pair(kind Kind, id string) error {
	v, err := p.d.ReadValue()
	if err != nil {
		return p.invalid(err)
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		err = &errs.FieldError{Field: "vector of " + human.Quote(id), Value: human.Quote(string(v)),
			Err: errors.New("not a 64-bit integer")}
		n = 0
	}
	return p.add(kind, id, n, err)
}
