// Package words implements an inverted index of texts: immutable segments, the state of their rows, and the search over
// both. It does not access files or the store; internal/view/words keeps segments and state in files.
//
// # Segment
//
// A segment holds the words of some documents. It never changes. Numbers are little-endian; sections are aligned to 8
// bytes:
//
//	offset
//	     0  8 bytes   "varvewrd"
//	     8  uint32    format, 3
//	    12  uint32    rows: documents in the segment
//	    16  uint64    fingerprint of the analyzer (Analyzer.Print)
//	    24  uint64    sum of the lengths of all rows
//	    32  uint32    sessions, including the empty one if a row has it
//	    36  uint32    terms
//	    40  uint64[32] offset of each section, in the order below; the last is the end of the sections
//	   296  sections:
//	        lsn       uint64[rows]       the version of the document
//	        time      int64[rows]        when it happened, in microseconds since 1970
//	        length    uint32[rows]       words of its content
//	        session   uint32[rows]       the number of its session
//	        idEnd     uint32[rows]       where its id ends in ids
//	        ids       the ids, one after the other
//	        hashes    uint64[rows]       xxhash64 of the ids, ascending
//	        hashRow   uint32[rows]       the row of each
//	        nameEnd   uint32[sessions]   where the name of a session ends in names
//	        names     the names, ascending
//	        firstRow  uint32[sessions]   the first row of a session
//	        blockAt   uint32[⌈terms/16⌉] where a block of terms begins in dictionary
//	        dictionary
//	        postings
//	        the columns and the orders of package order, each a section
//	   end  uint64[⌈end/65536⌉]  xxhash64 of each 64 KiB before end
//	        uint64    xxhash64 of these, seeded with end
//
// Format 1 has 16 offsets and no sections after postings; it stays searchable until a round of the flusher rewrites it.
// Format 2 has no bitmaps in its postings, and terms of the first version (see package analyzer).
//
// Rows are sorted by session, time and id, so the rows of a session are adjacent and in the order of the session.
//
// Terms are sorted by their bytes, in blocks of 16:
//
//	block     uvarint offset of the first term's postings in the section, then for each term:
//	          uvarint length of the prefix shared with the previous term (0 for the first of a block),
//	          uvarint length of the rest, the rest, uvarint number of its postings, uvarint their bytes
//
// The postings of a term are in groups of 128:
//
//	group     uvarint last row of the group − last row of the previous group (−1 before the first),
//	          uvarint bytes of the postings that follow, or 0 if a bitmap follows. A bitmap is written instead
//	          of postings if it is shorter and all of them are plain. It has a bit for each row after the
//	          previous group up to the last row, the lowest bit of each byte first
//	posting   uvarint (row − previous row)·2 + plain;
//	          plain 1: the word is once in the content and nowhere else; plain 0: uvarint the set of
//	          fields that have it, one bit for each, and for each of them uvarint the count
//
// Which documents share a segment depends on the order of writes. The bytes of a segment depend on its documents only:
// merging segments gives the same bytes as building one segment from their live documents.
//
// # State
//
// A Set is a list of segments with a state for each: which rows are dead (Dead), and the links of those rows whose
// predecessor or successor in the session is not the adjacent live row of the segment (Links). Sets are immutable: each
// change returns a new Set that shares the unchanged parts.
//
// # Score
//
// For the different terms t of a query, in the order of the query, and a document D
//
//	c(t,D)   = tf(t, content of D) / (1 − b + b·|D|/avg)                     b = 0.4
//	w(t,D)   = c(t,D) + Σ weight(field)·tf(t, field of D) + 0.5·c(t, before D) + 0.2·c(t, behind D)
//	score(D) = Σ idf(t) · w·(k1+1) / (w + k1)                                k1 = 1.2
//	idf(t)   = ln(1 + (N − d + 0.5)/(d + 0.5))     d = min(N, 1.7·df)
//
// Quiet words (query.Word.Quiet), such as stop words, add nothing to a score. A document that has an excluded word
// (-word) has weight 0 for all other words, and is not among the best of its session. If only one word of a query is in
// any document, a document D without the word gets score(D)·m/(m + k1), and its session gets 0.3 of that. m is the
// least weight that a document with the word can have: 1/(1 − b + b·L/avg), where L is the length of the longest
// content with the word, or 0.5 if that is less and some document has the word outside its content only. So documents
// without the word rank below all documents that have it.
//
// before and behind are the neighbours of D in its session, ordered by time and id. |D| is the number of words of the
// content, avg its mean over all N documents. df is the number of documents that have t themselves; the factor 1.7 = 1
// + 0.5 + 0.2 accounts for their neighbours, which score for t too. A name counts in the name field only, and d is then
// the number of documents that have it in that field, unless the query consists of names only, the name is required, or
// OR is next to it. The score of a hit is its own score, plus 0.3 times the sum of the three best scores in its
// session; a document without a session is a session of its own.
//
// All these numbers count live documents, and all sums are made in the order above. So the answer does not depend, not
// even in its last bit, on how documents are distributed over segments, nor on the sessions that a search skips because
// none of their documents can be among the best (prune.go).
package words
