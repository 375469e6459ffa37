// Package parts builds the lower parts of a store for tests, without Open: an engine with its log, vectors, counts,
// views, flusher, scopes and committer. A test of a package above builds that package's own part with its
// constructor, and calls it. Calls upwards go to a Host, whose answers a test sets.
//
// It is for tests in packages named X_test, beside the code that they test.
package parts
