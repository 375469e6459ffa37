package varve

// Admin is what operators and tools do with a store: its configuration and its numbers,
// verification, the index, purges, documents as their files have them, and positions of the log.
// A program that only keeps memories needs none of it.
type Admin struct{ st *Store }

// Admin returns what operators and tools need.
func (st *Store) Admin() Admin { return Admin{st} }
