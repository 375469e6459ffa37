// Package migrate is the proof that moving a store loses nothing: beside processes that write,
// over links and file systems that are in the way, with bytes that rot on the way, and that of
// the old place only goes what is proven to be in the new one. It has tests only.
//
// Migrations that are cut off at every operation are tested beside the store itself, with the
// disk that loses power.
package migrate
