package storetest

import (
	"fmt"
	"reflect"

	"github.com/varve-db/varve/internal/store"
)

// Environment is the environment in which a store is opened.
type Environment = store.Environment

// In returns a copy of the options o that has the environment e. O is varve.Options, which keeps the environment in an
// unexported field, so that hosts cannot replace the machine.
//
//	st, err := varve.Open(ctx, dir, storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: fsys}}))
func In[O any](o *O, e Environment) *O {
	c := *o
	*Of(&c) = e
	return &c
}

// Of returns a pointer to the environment in the options o, for reading and changing it. O is varve.Options.
func Of[O any](o *O) *Environment { return unexported[Environment](o, "env") }

// Inner returns the store behind a handle, for tests that inspect or break it. S is varve.Store.
func Inner[S any](st *S) *store.Store { return *unexported[*store.Store](st, "inner") }

// unexported returns a pointer to the field name of a struct of another package. structPtr points to the struct.
// unexported panics if the struct has no such field of type F.
func unexported[F any](structPtr any, name string) *F {
	f := reflect.ValueOf(structPtr).Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[F]() {
		panic(fmt.Sprintf("%T has no field %s of type %v", structPtr, name, reflect.TypeFor[F]()))
	}
	return (*F)(f.Addr().UnsafePointer())
}
