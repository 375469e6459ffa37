package kind

import (
	"errors"
	"fmt"
	"strings"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// Kind is a kind of document: what differs between a memory and an assembly for
// the code that compares, heals, copies or erases one.
type Kind struct {
	At      int  // among kinds
	Letter  byte // its keys in the log begin with it
	Section int  // of the index
	Folder  string
	Noun    string
	IDName  string // the member of a document that is its id
}

var (
	Memories   = &Kind{At: 0, Letter: record.Memory, Section: index.Memories, Folder: "memories", Noun: "memory", IDName: "id"}
	Assemblies = &Kind{At: 1, Letter: record.Assembly, Section: index.Assemblies, Folder: "assemblies", Noun: "assembly", IDName: "assembly_id"}

	Kinds = []*Kind{Memories, Assemblies}

	// Scopes are of working memory: a kind for purge only. They have no section and no vectors.
	Scopes = &Kind{At: -1, Letter: record.Working, Section: -1, Folder: places.Working, Noun: "working memory", IDName: "scope"}
)

// Folders have a file for each of their documents, named after its id.
var Folders = []string{Memories.Folder, Assemblies.Folder, places.Working}

// Key is that of a document in the log.
func (k *Kind) Key(id string) string { return string(rune(k.Letter)) + id }

// Vectors is the kind of its vectors.
func (k *Kind) Vectors() vector.Kind { return vector.Kind(k.At) }

// File is the place of a document, relative to the store.
func (k *Kind) File(id string) string { return k.Folder + "/" + jsondoc.FileName(id) }

// At is the kind whose folder a path of the store leads into, nil for another.
func At(rel string) *Kind {
	for _, k := range Kinds {
		if strings.HasPrefix(rel, k.Folder+"/") {
			return k
		}
	}
	return nil
}

// Of is the kind of an entry's key, nil for the key of no document.
func Of(key string) *Kind {
	for _, k := range Kinds {
		if len(key) > 1 && key[0] == k.Letter {
			return k
		}
	}
	return nil
}

// Content is a document that was read.
type Content struct {
	ID      string
	Vector  []float32
	Members []string // of an assembly
	Memory  *memstore.Memory
	Group   *assembly.Assembly
}

// Decode reads a document of this kind. What it returns may share bytes with data.
func (k *Kind) Decode(data []byte, o memstore.DecodeOptions) (Content, error) {
	if k == Memories {
		m, err := memstore.Decode(data, o)
		if err != nil {
			return Content{}, err
		}
		return Content{ID: m.ID, Vector: m.Embedding, Memory: m}, nil
	}
	a, err := assembly.Decode(data, assembly.DecodeOptions{
		Limits:   assembly.Limits{AssemblyBytes: o.Limits.MemoryBytes, IDBytes: o.Limits.IDBytes, Depth: o.Limits.Depth, EmbeddingDim: o.Limits.EmbeddingDim, Members: MembersMost},
		Location: o.Location, IDOptional: o.IDOptional, Owned: o.Owned,
	})
	if err != nil {
		return Content{}, err
	}
	return Content{ID: a.ID, Vector: a.CompositeEmbedding, Members: a.MemoryIDs, Group: a}, nil
}

// Elsewhere says of a document in a place that is not its id's where that is.
func (k *Kind) Elsewhere(id string) error {
	return fmt.Errorf("it holds the id %s, whose file is %s", human.Quote(id), jsondoc.FileName(id))
}

// Size says how much was read.
func (c *Content) Size() string {
	if c.Group != nil {
		return fmt.Sprintf("%d members", len(c.Members))
	}
	return fmt.Sprintf("%d bytes of content", len(c.Memory.Content))
}

// OffsetOf is the byte at which a document is no JSON, -1 where an error says nothing of that.
func OffsetOf(err error) int64 {
	var s *jsondoc.SyntaxError
	if errors.As(err, &s) {
		return s.Offset
	}
	return -1
}
