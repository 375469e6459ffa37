// Package parts builds the lower parts of a store for tests, without Open: an engine with its log, vectors, counts,
// views, flusher, scopes and committer. A test of a package above these builds the part of that package with its
// constructor, and passes it the lower parts. The calls that lower parts make to the packages above them go to a Host,
// whose answers the test sets.
//
// Only tests import this package. They are in packages named X_test, beside the code that they test, because this
// package imports that code.
package parts
