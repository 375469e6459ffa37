package forgery

import (
	"github.com/varve-db/varve/internal/forge"
	"github.com/varve-db/varve/internal/vfs"
)

// Forgery is one change of a store.
type Forgery struct {
	Name string
	File string // the file that it changes, by its path in the store; "": the end of the log
	// Codes are the exit codes that memctl verify may give before the repair; without them it must find
	// something that repair can heal, or that is lost.
	Codes []int
	// Lost: the damage cannot be distinguished from a log whose end was lost. The store can be read, and
	// is written to again after the repair.
	Lost bool

	do func(s *Store)
}

// Store is a store to be changed.
type Store struct {
	Dir string
	log *forge.Log
}

// All returns the forgeries of entries, tables and checkpoints.
func All() []Forgery { return append(append([]Forgery{}, entries...), files...) }

// Make makes the forgery in the store in dir.
func (f Forgery) Make(dir string) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	s := &Store{Dir: dir}
	if s.log, err = forge.Open(vfs.OS(), dir); err == nil {
		f.do(s)
	}
	return err
}

// failure is the panic value that ends a forgery that cannot be made.
type failure struct{ error }

func fail(err error) { panic(failure{err}) }
