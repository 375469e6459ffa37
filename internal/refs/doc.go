// Package refs counts the references to what must be let go of when its last
// user is done with it: mappings, and sets of them.
package refs
