package cli

import (
	"fmt"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/locate"
)

// Outside returns an error if dir is inside the folder of a store, because the store would treat files there as
// its own. store is the path of that store, or "" if dir is not inside a store. noun names, in the error, the kind
// of thing that the caller is about to create in dir.
func (a *App) Outside(dir, noun string) (store string, err error) {
	self := locate.Self(a.Getenv) // a store of another user is not opened, and does not matter
	own := func(dir string) bool { return self.Own(dir) && IsStore(dir) }
	switch store, err = locate.Above(dir, own); {
	case err != nil:
		return "", WithFix(err, outside)
	case store != "":
		return store, WithFix(fmt.Errorf("%w: %s is inside the store %s: %s cannot be created inside a store",
			varve.ErrInvalid, dir, store, noun), outside)
	}
	return "", nil
}

const outside = "give a path outside the store"
