package index

import (
	"errors"
	"fmt"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/vfs"
)

// OpenBase opens the base file of the index, mapped into memory, without the delta.
func OpenBase(fsys vfs.FS, dir, store string) (*Set, error) {
	t, err := table.Open(fsys, dir, BaseName, Schema())
	if err != nil {
		return nil, err
	}
	if m := t.Meta(); m.Store != store {
		err := fmt.Errorf("%s %w: the file belongs to store %s, but this is store %s",
			BaseName, table.ErrForeign, m.Store, store)
		return nil, errors.Join(err, t.Release())
	}
	return table.Of(t), nil
}
