package varve

import (
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/memstore"
)

// kind is a kind of document: what differs between a memory and an assembly for
// whoever finds, reads, files, judges or rebuilds one.
type kind struct {
	*docfile.Folder        // where its files are
	letter          byte   // its keys in the log begin with it
	section         int    // of the index
	idMember        string // with which a document begins
	noun            string // for messages
	parse           func(data []byte, id string) (parsed, error)
}

// parsed is a document that was read: what a line of the index and an entry of
// the log are made of.
type parsed struct {
	id               string
	created, updated *time.Time // as the document has them; may be filled in
	vector           []float32
	content          string                                           // of a memory
	members          []string                                         // of an assembly
	line             func(doc []byte, vectorID int64) ([]byte, error) // vectorID: 0 when it is the version itself
}

// key is the key of a document in the log.
func (k *kind) key(id string) string { return string(rune(k.letter)) + id }

// cacheKey is what a document is cached under. Ids are valid UTF-8; who looks for
// one that is not compares the kind.
func (k *kind) cacheKey(id string) string {
	if k.letter == record.Memory {
		return id
	}
	return "\xff" + id
}

// file is the place of a document, relative to the store.
func (k *kind) file(id string) string { return k.Name() + "/" + docfile.FileName(id) }

func (st *Store) makeKinds() {
	st.memories = &kind{
		Folder: st.layout.Folder("memories"), letter: record.Memory, section: index.Memories, idMember: "id", noun: "memory",
		parse: func(data []byte, id string) (parsed, error) {
			m, err := memstore.Decode(data, memstore.DecodeOptions{Limits: storedLimits, Location: st.o.NaiveTimes, ID: id})
			if err != nil {
				return parsed{}, err
			}
			return parsedMemory(m), nil
		},
	}
	st.assemblies = &kind{
		Folder: st.layout.Folder("assemblies"), letter: record.Assembly, section: index.Assemblies, idMember: "assembly_id", noun: "assembly",
		parse: func(data []byte, id string) (parsed, error) {
			a, err := assembly.Decode(data, assembly.DecodeOptions{Limits: storedAssembly, Location: st.o.NaiveTimes, ID: id})
			if err != nil {
				return parsed{}, err
			}
			return parsed{
				id: a.ID, created: &a.CreatedAt, updated: &a.UpdatedAt, vector: a.CompositeEmbedding, members: a.MemoryIDs, line: a.Line,
			}, nil
		},
	}
	st.kinds = []*kind{st.memories, st.assemblies}
}

func parsedMemory(m *Memory) parsed {
	return parsed{id: m.ID, created: &m.CreatedAt, updated: &m.UpdatedAt, vector: m.Embedding, content: m.Content, line: m.Line}
}

// kindIn is the kind whose lines stand in a section of the index.
func (st *Store) kindIn(section int) *kind {
	for _, k := range st.kinds {
		if k.section == section {
			return k
		}
	}
	return nil
}

// kindNamed is the kind whose keys begin with a letter.
func (st *Store) kindNamed(letter byte) *kind {
	if letter == st.assemblies.letter {
		return st.assemblies
	}
	return st.memories
}

// kindOf is the kind of an entry's key, nil when it is the key of no document.
func (st *Store) kindOf(key string) *kind {
	if len(key) < 2 {
		return nil
	}
	for _, k := range st.kinds {
		if key[0] == k.letter {
			return k
		}
	}
	return nil
}
