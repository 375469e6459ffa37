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

// takeAssembly writes one assembly of the source, after the memories that came before it in the source. Members
// that do not exist are kept in the assembly, because they are missing in the source too.
func (intake *Intake) takeAssembly(ctx context.Context, src *importer.Item) error {
	if err := intake.write(ctx); err != nil {
		return err
	}
	as, err := assembly.Decode(src.JSON,
		assembly.DecodeOptions{Limits: intake.Groups, Location: intake.Zone, Owned: true})
	if err != nil {
		intake.refuse(src, err)
		return nil
	}
	there, err := intake.Store.Assemblies().Get(ctx, as.ID)
	cond, wanted, err := intake.decide(src, there.Version, err,
		func() (bool, error) { return sameAssembly(as, &there) })
	if err != nil || !wanted {
		return err
	}
	options := []varve.PutOption{varve.AllowMissing(), varve.AnyDimension(), varve.RefusePurged()}
	if cond != nil {
		options = append(options, cond)
	}
	// As for memories: a signal does not interrupt the commit.
	_, err = intake.Store.Assemblies().Put(context.WithoutCancel(ctx), *as, options...)
	switch {
	case err == nil:
		intake.stored(src, there.Version != 0 || cond == nil)
	case errors.Is(err, varve.ErrConflict):
		intake.keep(src, "another process wrote this assembly meanwhile")
	case cli.Classify(err).Code == cli.CodeRefused:
		intake.refuse(src, err)
	default:
		return err
	}
	return nil
}

// sameAssembly reports whether the imported assembly equals the stored assembly there. It ignores the fields that
// a store sets itself: the times, and the embeddings of the assembly as a whole. A creation time is compared only
// if the imported assembly has one.
func sameAssembly(imported, there *varve.Assembly) (bool, error) {
	n := *imported
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
