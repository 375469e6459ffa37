package document

import (
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/memstore"
)

// Stored are the limits for reading a document whose store, and so its config.json, cannot be
// used. How many bytes of a file are read is in package places.
var Stored = memstore.Limits{MemoryBytes: places.GroundMost, IDBytes: 1024, Depth: 1000, EmbeddingDim: 1 << 20}

// MembersMost is how many members a stored assembly may have.
const MembersMost = 1 << 24
