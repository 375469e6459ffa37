// Package build makes segments of package words, from documents or from other segments. The format of a segment is
// described in the documentation of package words.
//
// A Builder keeps the postings of each word in encoded form, so that a document takes little more memory than in a
// segment. A Writer keeps the sections in pieces that are never copied, and outputs them one after the other, into
// memory or into a file.
package build
