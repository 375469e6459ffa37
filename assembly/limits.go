package assembly

import (
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
)

// Limits are the limits of one assembly, for writing and for reading. A zero field means its default.
type Limits struct {
	AssemblyBytes int // size of the encoded document in bytes; default 16 MiB
	IDBytes       int // length of the id, of the name, and of each id in a list, in bytes; default 1,024
	Depth         int // nesting, where the document is level 1; default 100, at most 10,000
	EmbeddingDim  int // numbers in each of the two embeddings; default 65,536
	Members       int // memories in memory_ids, and assemblies in merged_from; default 100,000
}

// DefaultLimits returns the limits of a store whose config sets none.
func DefaultLimits() Limits {
	return Limits{AssemblyBytes: 16 << 20, IDBytes: jsondoc.MaxID, Depth: jsondoc.MaxDepth, EmbeddingDim: 1 << 16,
		Members: 100_000}
}

// Resolved returns l with defaults in place of zero fields.
func (l Limits) Resolved() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ have, def *int }{
		{&l.AssemblyBytes, &d.AssemblyBytes}, {&l.IDBytes, &d.IDBytes}, {&l.Depth, &d.Depth},
		{&l.EmbeddingDim, &d.EmbeddingDim}, {&l.Members, &d.Members},
	} {
		if *f.have <= 0 {
			*f.have = *f.def
		}
	}
	l.Depth = min(l.Depth, jsondoc.DeepestDepth)
	return l
}

// wholeName is the name of the whole document in errors.
const wholeName = "assembly"

func (l Limits) checkSize(n int) error { return jsondoc.CheckSize(wholeName, n, l.AssemblyBytes) }

// checkIDs returns an error for a list that is too long or has an invalid id.
func (l Limits) checkIDs(field string, ids []string) error {
	if len(ids) > l.Members {
		return &errs.FieldError{Field: field, Value: fmt.Sprintf("of %d ids", len(ids)),
			Limit: fmt.Sprintf("%d ids", l.Members),
			Err: fmt.Errorf("%w: split the assembly into several, or raise max_assembly_members in config.json",
				errs.ErrLimit)}
	}
	for i, id := range ids {
		if err := jsondoc.CheckID(fmt.Sprintf("%s[%d]", field, i), id, l.IDBytes); err != nil {
			return err
		}
	}
	return nil
}

// checkName returns an error for a name that is too long. The name is limited because the index line contains it and
// must stay short.
func (l Limits) checkName(name string) error {
	if len(name) <= l.IDBytes {
		return nil
	}
	return &errs.FieldError{Field: memberName, Value: human.Quote(name), Limit: fmt.Sprintf("%d bytes", l.IDBytes),
		Err: fmt.Errorf("%w: use a shorter name, and the description for longer text", errs.ErrTooLarge)}
}
