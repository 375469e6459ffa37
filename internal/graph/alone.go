package graph

import "context"

type aloneKey struct{}

// AloneAt gives a context for the store's Transact: each run of its function is then
// committed only if, since the run began, nobody put a relation with one of these names
// at an end, by whatever process; else the function runs again. What else is committed
// does not matter, but names share slots (package state), so a relation of another name may. It is
// for deleting the relations of a name, which requires having seen all of them.
//
// It travels in the context because nothing but a graph needs it: the store's interface
// does not know of relations.
func AloneAt(ctx context.Context, names ...string) context.Context {
	return context.WithValue(ctx, aloneKey{}, names)
}

// AloneNames are those that AloneAt was given, nil where it was not called.
func AloneNames(ctx context.Context) []string {
	names, _ := ctx.Value(aloneKey{}).([]string)
	return names
}
