// Package order defines the orders in which documents are listed, and the metadata that they need.
//
// A segment of package words has for each row a line with this metadata:
//
//	created   int64    when it was first written, in microseconds since 1970
//	updated   int64    when it was last written
//	expires   int64    when it expires; 2⁶³−1: never
//	score     int64    its score, encoded by ScoreKey so that the integers sort as the scores do
//	size      uint32   bytes of the document
//
// For each order the segment has the numbers of its rows, sorted by the key (time, created, updated, score, size) and
// then by the id. Like the rest of a segment, all of this depends on its documents only.
package order
