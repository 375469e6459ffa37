package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// YieldAssembly yields an assembly if it still exists. It returns false only if yield returned false.
func (eng *Engine) YieldAssembly(ctx context.Context, id string, yield func(assembly.Assembly, error) bool) bool {
	v, err := eng.Load(ctx, eng.kinds.Assemblies, id)
	if errors.Is(err, errs.ErrNotFound) {
		return true // deleted since
	}
	var a assembly.Assembly
	if err == nil {
		a, err = eng.DecodeAssembly(id, v)
	} else {
		err = fmt.Errorf("assembly %s: %w", human.Quote(id), err)
	}
	return yield(a, err)
}

// AssembliesWith yields the assemblies that contain a memory, in the order of their ids. It does not read assemblies
// that do not contain the memory.
func (eng *Engine) AssembliesWith(ctx context.Context, member string) iter.Seq2[assembly.Assembly, error] {
	return Reading(ctx, eng, func(yield func(assembly.Assembly, error) bool) {
		ids, _, err := eng.Containing(member)
		if err != nil {
			yield(assembly.Assembly{}, err)
			return
		}
		for _, id := range ids {
			more := eng.YieldAssembly(ctx, id, func(a assembly.Assembly, err error) bool {
				if err == nil && !a.Has(member) {
					return true // removed since
				}
				return yield(a, err)
			})
			if !more {
				return
			}
		}
	})
}
