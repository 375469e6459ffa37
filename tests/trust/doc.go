// Package trust tests that a store from an untrusted source cannot harm anything outside itself. It has
// only tests.
//
// Files of a store that contain names (entries of the log, lines of the index, the vectors' mapping, the
// notes of a store that was moved or is being moved, manifests of repairs) name places outside, and
// every operation of package varve runs on a fresh copy of each. The folder beside the store must be
// unchanged, in names, bytes, modes and times, and nothing of it may be in the store, in a copy that was
// made, or in an answer.
//
// Package tests/hostile tests which kinds of files may be in the place of each file of a store (links,
// FIFOs, devices, sparse files), with every command of memctl.
package trust
