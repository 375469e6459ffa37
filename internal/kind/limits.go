package kind

import (
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/memstore"
)

// MembersMost is the maximum number of members of a stored assembly.
const MembersMost = 1 << 24

// Stored are the limits for reading stored documents. They are wider than those in config.json, which are for
// writing. Package places has the maximum size of a file.
var (
	Stored         = memstore.Limits{MemoryBytes: places.StoredMost, IDBytes: 1024, Depth: 1000, EmbeddingDim: 1 << 20}
	StoredAssembly = assembly.Limits{AssemblyBytes: places.StoredMost, IDBytes: 1024, Depth: 1000, EmbeddingDim: 1 << 20,
		Members: MembersMost}

	StoredLimits = Limits{Memory: Stored, Assembly: StoredAssembly, Note: places.StoredMost}
)
