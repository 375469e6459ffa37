// Package order has the orders in which documents are listed, and what of a document they need.
//
// A segment of package words has, for each of its rows, a line:
//
//	created   int64    when it was first written, in microseconds since 1970
//	updated   int64    when it was last written
//	expires   int64    when it expires; 2⁶³−1: never
//	score     int64    its score by ScoreKey, a number of the same order
//	size      uint32   bytes of the document
//
// and for each order the numbers of its rows sorted by the key (time, created, updated, score, size) and
// the id. All of that depends on the documents only, as the rest of a segment.
package order
