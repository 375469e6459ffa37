package varve

import (
	"context"
	"errors"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs/over"
	"github.com/varve-db/varve/segment"
)

// openBeside opens a store that cannot be written and that lacks its log or its index. It creates the missing log or
// index in a temporary folder, which Close removes. cause is the error of the attempt to open the store without such a
// folder; openBeside returns cause if nothing prevents writing to the store.
func openBeside(ctx context.Context, dir string, o Options, cause error) (*Store, error) {
	if o.env.System.FS != nil {
		return nil, cause
	}
	looked := o
	looked.fill()
	refused := looked.environment(dir).Medium()
	if refused == nil {
		return nil, cause
	}
	fsys, remove, err := over.Temporary(dir, places.IsName, looked.LockWait)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	o.ReadOnly, o.MustExist, o.NoBackground, o.SegmentSize, o.env.System.FS = false, true, true, segment.MinSize, fsys
	o.closed = remove
	st, err := openOnce(ctx, dir, &o)
	if err != nil {
		if !errors.Is(err, ErrNoStore) {
			cause = errors.Join(cause, err)
		}
		return nil, errors.Join(cause, remove())
	}
	st.inner.Engine.Env().ReadOnly, st.inner.Engine.Env().Refused = true, refused
	return st, nil
}
