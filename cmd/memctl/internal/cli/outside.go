package cli

import (
	"fmt"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/locate"
)

// Outside returns an error if dir is inside the folder of a store, which would treat files there as its own.
// The parameter what names, for the error, what is to be created in dir. above is the folder of that store.
func (a *App) Outside(dir, what string) (above string, err error) {
	self := locate.Self(a.Getenv) // a store of another user is not opened, and does not matter
	own := func(dir string) bool { return self.Own(dir) && IsStore(dir) }
	switch above, err = locate.Above(dir, own); {
	case err != nil:
		return "", WithFix(err, outside)
	case above != "":
		return above, WithFix(fmt.Errorf("%w: %s is inside of the store %s: %s cannot be created inside a store",
			varve.ErrInvalid, dir, above, what), outside)
	}
	return "", nil
}

const outside = "name a folder outside of it"
