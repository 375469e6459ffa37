package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/working"
)

// Kind is a kind of document in an open store: with the folder of its files, and how one is
// read there.
type Kind struct {
	*document.Kind
	*docfile.Folder
	Parse    func(data []byte, id string) (Parsed, error)
	parseNew func(data []byte, id string) (Parsed, error) // by today's limits, which hold for what is written
}

// Parsed is a document that was read: what a line of the index and an entry of
// the log are made of.
type Parsed struct {
	ID               string
	Created, Updated *time.Time // as the document has them; may be filled in
	Vector           []float32
	Memory           *memstore.Memory                                 // nil: an assembly
	Members          []string                                         // of an assembly
	Line             func(doc []byte, vectorID int64) ([]byte, error) // vectorID: 0 when it is the version itself
}

// CacheKey is what a document is cached under. Ids are valid UTF-8; a look-up of one that is not
// compares the kind.
func (k *Kind) CacheKey(id string) string {
	if k.Letter == record.Memory {
		return id
	}
	return "\xff" + id
}

// kinds are those of a store.
type kinds struct {
	Memories, Assemblies *Kind
	Scopes               *Kind   // of working memory: no lines in the index, and a kind for purge only
	All                  []*Kind // memories and assemblies, in the order of the index's sections and of the checkpoint's times
}

// newKinds returns the kinds in a store's folder. Times without a zone are in zone; limits are
// those of today.
func newKinds(in docfile.Layout, zone *time.Location, limits func() (memstore.Limits, assembly.Limits)) *kinds {
	memory := func(data []byte, id string, l memstore.Limits) (Parsed, error) {
		m, err := memstore.Decode(data, memstore.DecodeOptions{Limits: l, Location: zone, ID: id})
		if err != nil {
			return Parsed{}, err
		}
		return parsedMemory(m), nil
	}
	group := func(data []byte, id string, l assembly.Limits) (Parsed, error) {
		a, err := assembly.Decode(data, assembly.DecodeOptions{Limits: l, Location: zone, ID: id})
		if err != nil {
			return Parsed{}, err
		}
		return Parsed{ID: a.ID, Created: &a.CreatedAt, Updated: &a.UpdatedAt, Vector: a.CompositeEmbedding, Members: a.MemoryIDs, Line: a.Line}, nil
	}
	ks := &kinds{
		Memories: &Kind{
			Kind: document.Memories, Folder: in.Folder(document.Memories.Folder),
			Parse: func(data []byte, id string) (Parsed, error) { return memory(data, id, document.Stored) },
			parseNew: func(data []byte, id string) (Parsed, error) {
				l, _ := limits()
				return memory(data, id, l)
			},
		},
		Assemblies: &Kind{
			Kind: document.Assemblies, Folder: in.Folder(document.Assemblies.Folder),
			Parse: func(data []byte, id string) (Parsed, error) { return group(data, id, document.StoredAssembly) },
			parseNew: func(data []byte, id string) (Parsed, error) {
				_, l := limits()
				return group(data, id, l)
			},
		},
		Scopes: &Kind{Kind: document.Scopes, Folder: in.Folder(places.Working)},
	}
	ks.All = []*Kind{ks.Memories, ks.Assemblies}
	return ks
}

func parsedMemory(m *memstore.Memory) Parsed {
	return Parsed{ID: m.ID, Created: &m.CreatedAt, Updated: &m.UpdatedAt, Vector: m.Embedding, Memory: m, Line: m.Line}
}

// Misplaced says of a document in a file that is not its id's whose it is.
func (k *Kind) Misplaced(id string) error {
	return fmt.Errorf("%w: it holds the id %s, whose file is %s: give it that name, or another id", errs.ErrInvalid, human.Quote(id), k.File(id))
}

// Elsewhere says of a document that is none of its folder's, for it has no such id,
// where it belongs, if it is one of another kind.
func (ks *kinds) Elsewhere(k *Kind, data []byte, why error) error {
	var field *errs.FieldError
	if !errors.As(why, &field) || field.Field != k.IDName || field.Value != "" {
		return why
	}
	for _, other := range ks.All {
		if p, err := other.Parse(data, ""); other != k && err == nil {
			return fmt.Errorf("%w: it is the %s %s, whose file is %s: move it there", errs.ErrInvalid, other.Noun, human.Quote(p.ID), other.File(p.ID))
		}
	}
	return why
}

// ParseEdit reads what a person has written: the limits of a document hold for it as for
// one that is put.
func (k *Kind) ParseEdit(data []byte, id string) (Parsed, error) {
	p, err := k.parseNew(data, id)
	if err == nil {
		return p, nil
	}
	if _, stored := k.Parse(data, id); stored == nil {
		err = fmt.Errorf("%w: shorten it, or raise the limit in config.json and save it again", err)
	}
	return Parsed{}, err
}

// In is the kind whose lines stand in a section of the index.
func (ks *kinds) In(section int) *Kind {
	for _, k := range ks.All {
		if k.Section == section {
			return k
		}
	}
	return nil
}

// Named is the kind whose keys begin with a letter.
func (ks *kinds) Named(letter byte) *Kind {
	if letter == ks.Assemblies.Letter {
		return ks.Assemblies
	}
	return ks.Memories
}

// Of is the kind of an entry's key, nil when it is the key of no document.
func (ks *kinds) Of(key string) *Kind {
	if len(key) < 2 {
		return nil
	}
	for _, k := range ks.All {
		if key[0] == k.Letter {
			return k
		}
	}
	return nil
}

// Valid says what is wrong with ids, where that can be told of them.
func (k *Kind) Valid(ids []string) error {
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
