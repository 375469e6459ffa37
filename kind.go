package varve

import (
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/working"
)

// kind is a kind of document in an open store: with the folder of its files, and how one is
// read there.
type kind struct {
	*document.Kind
	*docfile.Folder
	parse    func(data []byte, id string) (parsed, error)
	parseNew func(data []byte, id string) (parsed, error) // by today's limits, which hold for what is written
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

// cacheKey is what a document is cached under. Ids are valid UTF-8; who looks for
// one that is not compares the kind.
func (k *kind) cacheKey(id string) string {
	if k.Letter == record.Memory {
		return id
	}
	return "\xff" + id
}

// kinds are those of a store.
type kinds struct {
	memories, assemblies *kind
	scopes               *kind   // of working memory: no lines in the index, and a kind for purge only
	all                  []*kind // memories and assemblies, in the order of the index's sections and of the checkpoint's times
}

// newKinds are the kinds in a store's folder. Times without a zone are in zone; limits are
// those of today.
func newKinds(in docfile.Layout, zone *time.Location, limits func() (memstore.Limits, assembly.Limits)) *kinds {
	memory := func(data []byte, id string, l memstore.Limits) (parsed, error) {
		m, err := memstore.Decode(data, memstore.DecodeOptions{Limits: l, Location: zone, ID: id})
		if err != nil {
			return parsed{}, err
		}
		return parsedMemory(m), nil
	}
	group := func(data []byte, id string, l assembly.Limits) (parsed, error) {
		a, err := assembly.Decode(data, assembly.DecodeOptions{Limits: l, Location: zone, ID: id})
		if err != nil {
			return parsed{}, err
		}
		return parsed{id: a.ID, created: &a.CreatedAt, updated: &a.UpdatedAt, vector: a.CompositeEmbedding, members: a.MemoryIDs, line: a.Line}, nil
	}
	ks := &kinds{
		memories: &kind{
			Kind: document.Memories, Folder: in.Folder(document.Memories.Folder),
			parse: func(data []byte, id string) (parsed, error) { return memory(data, id, document.Stored) },
			parseNew: func(data []byte, id string) (parsed, error) {
				l, _ := limits()
				return memory(data, id, l)
			},
		},
		assemblies: &kind{
			Kind: document.Assemblies, Folder: in.Folder(document.Assemblies.Folder),
			parse: func(data []byte, id string) (parsed, error) { return group(data, id, document.StoredAssembly) },
			parseNew: func(data []byte, id string) (parsed, error) {
				_, l := limits()
				return group(data, id, l)
			},
		},
		scopes: &kind{Kind: document.Scopes, Folder: in.Folder(places.Working)},
	}
	ks.all = []*kind{ks.memories, ks.assemblies}
	return ks
}

func parsedMemory(m *memstore.Memory) parsed {
	return parsed{id: m.ID, created: &m.CreatedAt, updated: &m.UpdatedAt, vector: m.Embedding, content: m.Content, line: m.Line}
}

// misplaced says of a document in a file that is not its id's whose it is.
func (k *kind) misplaced(id string) error {
	return fmt.Errorf("%w: it holds the id %s, whose file is %s: give it that name, or another id", errs.ErrInvalid, errs.Quote(id), k.File(id))
}

// ofOtherKind says of a document that is none of its folder's, for it has no such id,
// where it belongs, if it is one of another kind.
func (ks *kinds) ofOtherKind(k *kind, data []byte, why error) error {
	var field *errs.FieldError
	if !errors.As(why, &field) || field.Field != k.IDName || field.Value != "" {
		return why
	}
	for _, other := range ks.all {
		if p, err := other.parse(data, ""); other != k && err == nil {
			return fmt.Errorf("%w: it is the %s %s, whose file is %s: move it there", errs.ErrInvalid, other.Noun, errs.Quote(p.id), other.File(p.id))
		}
	}
	return why
}

// parseEdit reads what a person has written: the limits of a document hold for it as for
// one that is put.
func (k *kind) parseEdit(data []byte, id string) (parsed, error) {
	p, err := k.parseNew(data, id)
	if err == nil {
		return p, nil
	}
	if _, stored := k.parse(data, id); stored == nil {
		err = fmt.Errorf("%w: shorten it, or raise the limit in config.json and save it again", err)
	}
	return parsed{}, err
}

// kindIn is the kind whose lines stand in a section of the index.
func (ks *kinds) kindIn(section int) *kind {
	for _, k := range ks.all {
		if k.Section == section {
			return k
		}
	}
	return nil
}

// kindNamed is the kind whose keys begin with a letter.
func (ks *kinds) kindNamed(letter byte) *kind {
	if letter == ks.assemblies.Letter {
		return ks.assemblies
	}
	return ks.memories
}

// kindOf is the kind of an entry's key, nil when it is the key of no document.
func (ks *kinds) kindOf(key string) *kind {
	if len(key) < 2 {
		return nil
	}
	for _, k := range ks.all {
		if key[0] == k.Letter {
			return k
		}
	}
	return nil
}

// valid says what is wrong with ids, where that can be told of them.
func (k *kind) valid(ids []string) error {
	if k.Section >= 0 {
		return nil
	}
	for _, key := range ids {
		if _, err := working.ParseScope(key); err != nil {
			return err
		}
	}
	return nil
}
