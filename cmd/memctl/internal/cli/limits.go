package cli

import (
	"github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/memstore"
)

// LimitsOf returns the limits of a store for decoding memories.
func LimitsOf(c varve.Config) memstore.Limits {
	d := memstore.DefaultLimits()
	if c.MaxMemoryBytes > 0 {
		d.MemoryBytes = c.MaxMemoryBytes
	}
	if c.MaxIDBytes > 0 {
		d.IDBytes = c.MaxIDBytes
	}
	if c.MaxDepth > 0 {
		d.Depth = c.MaxDepth
	}
	if c.MaxEmbeddingDims > 0 {
		d.EmbeddingDim = c.MaxEmbeddingDims
	}
	return d
}

// NoLimits returns very high limits, for decoding stored memories: these may have been written when the limits of the
// store were higher.
func NoLimits() memstore.Limits {
	return memstore.Limits{MemoryBytes: 1 << 30, IDBytes: 1 << 20, Depth: 10_000, EmbeddingDim: 1 << 26}
}

// AssemblyLimitsOf returns the limits of a store for decoding assemblies.
func AssemblyLimitsOf(c varve.Config) assembly.Limits {
	l := LimitsOf(c)
	return assembly.Limits{
		AssemblyBytes: l.MemoryBytes, IDBytes: l.IDBytes, Depth: l.Depth, EmbeddingDim: l.EmbeddingDim,
		Members: c.Resolved().MaxAssemblyMembers,
	}
}

// NoAssemblyLimits returns very high limits, for decoding stored assemblies: these may have been written when the
// limits of the store were higher.
func NoAssemblyLimits() assembly.Limits {
	const huge = 1 << 30
	return assembly.Limits{AssemblyBytes: huge, IDBytes: huge, Depth: huge, EmbeddingDim: huge, Members: huge}
}
