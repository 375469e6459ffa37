// Package trust tests that a store that came from elsewhere can harm nothing but itself. It has only
// tests.
//
// Files of a store that hold names (entries of the log, lines of the index, the vectors' mapping, the
// notes of a store that was moved or is being moved, manifests of repairs) name places outside, and
// every operation of package varve runs on a fresh copy of each. The folder beside the store must be
// as before, in names, bytes, modes and times, and nothing of it may be in the store, in a copy that
// was made, or in an answer.
//
// What kinds of files may be in the place of each file of a store (links, FIFOs, devices, sparse
// files), and every command of memctl on them, is for tests/hostile.
package trust
