// Package processes tests that several processes, some of them killed, can use the same data of a store
// at once without losing any acknowledged operation. It has only tests, so far of working memory. The
// tests of memories are in the package of the store, since they use its internals.
package processes
