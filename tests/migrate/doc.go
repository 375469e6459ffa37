// Package migrate tests that moving a store loses nothing: while processes write, across links and
// file systems, with bytes that rot during the move; and that only files that are proven to be in
// the new place are removed from the old one. It has only tests.
//
// Migrations that are interrupted at every operation are tested in the package of the store itself,
// with the simulated disk that loses power.
package migrate
