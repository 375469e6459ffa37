package graph

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
)

// The beginnings of the ids. No other memory should have them.
const (
	entityPrefix   = "entity:"
	entityHashed   = "entity#"
	relationPrefix = "relation:"
	relationHashed = "relation#"
)

// EntityPrefix and RelationPrefix are the common beginnings of all ids of entities and of relations,
// including those of long names.
const (
	EntityPrefix   = "entity"
	RelationPrefix = "relation"
)

// Longer names are hashed. With the prefix the ids stay below their limit.
const (
	maxName     = 256
	maxRelation = 768
)

// IsID reports whether an id has the form of the ids that this package gives to the memories of entities and
// relations.
func IsID(id string) bool { return isEntityID(id) || IsRelationID(id) }

func isEntityID(id string) bool {
	return strings.HasPrefix(id, entityPrefix) || strings.HasPrefix(id, entityHashed)
}

// IsRelationID reports whether an id has the form of the ids that this package gives to the memories of relations.
func IsRelationID(id string) bool {
	return strings.HasPrefix(id, relationPrefix) || strings.HasPrefix(id, relationHashed)
}

// EntityID returns the id of the memory that represents the entity with this name. The id contains the name, or a hash
// if the name is long.
func EntityID(name string) string {
	if len(name) <= maxName {
		return entityPrefix + name
	}
	h := sha256.Sum256([]byte(name))
	return entityHashed + hex.EncodeToString(h[:])
}

// ID returns the relation's id.
func (r Relation) ID() string {
	if len(r.From)+len(r.Type)+len(r.To) <= maxRelation {
		if s := escape(r.From) + "|" + escape(r.Type) + "|" + escape(r.To); len(s) <= maxRelation {
			return relationPrefix + s
		}
	}
	h := sha256.New()
	for _, part := range []string{r.From, r.Type, r.To} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		io.WriteString(h, part)
	}
	return relationHashed + hex.EncodeToString(h.Sum(nil))
}

var escaper = strings.NewReplacer("%", "%25", "|", "%7C")

func escape(s string) string { return escaper.Replace(s) }
