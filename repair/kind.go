package repair

import (
	"fmt"
	"strings"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// kind is a kind of document: what differs between a memory and an assembly for
// whoever compares, heals, copies or erases one.
type kind struct {
	at      int  // among kinds
	letter  byte // its keys in the log begin with it
	section int  // of the index
	folder  string
	noun    string
	idName  string // the member that is the id
}

var (
	memories   = &kind{at: 0, letter: record.Memory, section: index.Memories, folder: "memories", noun: "memory", idName: "id"}
	assemblies = &kind{at: 1, letter: record.Assembly, section: index.Assemblies, folder: "assemblies", noun: "assembly", idName: "assembly_id"}

	kinds = []*kind{memories, assemblies}
)

// folders have a file for each of their documents, named after its id.
var folders = []string{memories.folder, assemblies.folder, places.Working}

func (k *kind) key(id string) string { return string(rune(k.letter)) + id }

// vectors is the kind of its vectors.
func (k *kind) vectors() vector.Kind { return vector.Kind(k.at) }

// file is the place of a document, relative to the store.
func (k *kind) file(id string) string { return k.folder + "/" + docfile.FileName(id) }

// kindAt is the kind whose folder a path of the store leads into, nil for another.
func kindAt(rel string) *kind {
	for _, k := range kinds {
		if strings.HasPrefix(rel, k.folder+"/") {
			return k
		}
	}
	return nil
}

// kindOf is the kind of an entry's key, nil for the key of no document.
func kindOf(key string) *kind {
	for _, k := range kinds {
		if len(key) > 1 && key[0] == k.letter {
			return k
		}
	}
	return nil
}

// content is a document that was read.
type content struct {
	id      string
	vector  []float32
	members []string // of an assembly
	memory  *memstore.Memory
	group   *assembly.Assembly
}

func (k *kind) decode(data []byte, o memstore.DecodeOptions) (content, error) {
	if k == memories {
		m, err := memstore.Decode(data, o)
		if err != nil {
			return content{}, err
		}
		return content{id: m.ID, vector: m.Embedding, memory: m}, nil
	}
	a, err := assembly.Decode(data, assembly.DecodeOptions{
		Limits:   assembly.Limits{AssemblyBytes: o.Limits.MemoryBytes, IDBytes: o.Limits.IDBytes, Depth: o.Limits.Depth, EmbeddingDim: o.Limits.EmbeddingDim, Members: membersMost},
		Location: o.Location, IDOptional: o.IDOptional, Owned: o.Owned,
	})
	if err != nil {
		return content{}, err
	}
	return content{id: a.ID, vector: a.CompositeEmbedding, members: a.MemoryIDs, group: a}, nil
}

// membersMost is for reading what is stored: today's limit is for writing.
const membersMost = 1 << 24

// elsewhere says of a document in a place that is not its id's where that is.
func (k *kind) elsewhere(id string) error {
	return fmt.Errorf("it holds the id %s, whose file is %s", errs.Quote(id), docfile.FileName(id))
}

// size says how much was read.
func (c *content) size() string {
	if c.group != nil {
		return fmt.Sprintf("%d members", len(c.members))
	}
	return fmt.Sprintf("%d bytes of content", len(c.memory.Content))
}
