// Package build makes segments of package words, of documents or of other segments. What is in a
// segment, byte by byte, is in that package's documentation.
//
// A Builder keeps of each word the postings as they are written, so that a document takes little more
// memory than in a segment. A Writer keeps the sections, in pieces that are not copied, and gives them
// out one after the other: into memory, or into a file.
package build
