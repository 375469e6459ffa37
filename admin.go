package varve

// Admin has the operations for operators and tools: configuration and numbers, verification, the
// index, purges, documents as their files have them, and positions of the log. A program that only
// keeps memories needs none of it.
type Admin struct{ st *Store }

// Admin returns the operations for operators and tools.
func (st *Store) Admin() Admin { return Admin{st} }
