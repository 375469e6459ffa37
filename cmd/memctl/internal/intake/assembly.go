package intake

import (
	"context"
	"errors"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/importer"
	"github.com/varve-db/varve/internal/diff"
)

// takeAssembly writes one assembly of the source, after the memories that came before it. Members that do not
// exist are kept in the assembly, because they are missing in the source too.
func (in *Intake) takeAssembly(ctx context.Context, it *importer.Item) error {
	if err := in.write(ctx); err != nil {
		return err
	}
	as, err := assembly.Decode(it.JSON, assembly.DecodeOptions{Limits: in.Groups, Location: in.Zone, Owned: true})
	if err != nil {
		in.refuse(it, err)
		return nil
	}
	there, err := in.Store.Assemblies().Get(ctx, as.ID)
	cond, wanted, err := in.decide(it, there.Version, err, func() (bool, error) { return sameAssembly(as, &there) })
	if err != nil || !wanted {
		return err
	}
	options := []varve.PutOption{varve.AllowMissing(), varve.AnyDimension(), varve.RefusePurged()}
	if cond != nil {
		options = append(options, cond)
	}
	// As for memories: a signal does not interrupt the commit.
	_, err = in.Store.Assemblies().Put(context.WithoutCancel(ctx), *as, options...)
	switch {
	case err == nil:
		in.stored(it, there.Version != 0 || cond == nil)
	case errors.Is(err, varve.ErrConflict):
		in.keep(it, "another process wrote this assembly meanwhile")
	case cli.Classify(err).Code == cli.CodeRefused:
		in.refuse(it, err)
	default:
		return err
	}
	return nil
}

// sameAssembly reports whether the imported assembly equals the stored one, except for what a store
// sets itself: times, and the composite of the members.
func sameAssembly(as, there *varve.Assembly) (bool, error) {
	n := *as
	n.CreatedAt, n.UpdatedAt, n.VectorIndexUpdatedAt = there.CreatedAt, there.UpdatedAt, there.VectorIndexUpdatedAt
	n.CompositeEmbedding, n.HyperbolicEmbedding = there.CompositeEmbedding, there.HyperbolicEmbedding
	if n.CreationTime.IsZero() {
		n.CreationTime = there.CreationTime
	}
	a, err := n.Encode(cli.NoAssemblyLimits())
	if err != nil {
		return false, err
	}
	b, err := there.Encode(cli.NoAssemblyLimits())
	if err != nil {
		return false, err
	}
	return diff.Same(a, b)
}
