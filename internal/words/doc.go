// Package words is an inverted index of texts: immutable segments, the state of their rows, and the
// search over both. It knows no files and no store; internal/view/words keeps it in files.
//
// # Segment
//
// A segment holds the words of some documents. It never changes. Little-endian, sections aligned to 8
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
// Format 1 has 16 offsets, and ends with postings: it is searched until a round makes it again. Format 2 has no bitmaps
// in its postings, and terms of the first version (package analyzer).
//
// Rows are sorted by session, time and id, so that the rows of a session adjoin, in their order.
//
// Terms are sorted by their bytes, in blocks of 16:
//
//	block     uvarint offset of the first term's postings in the section, then for each term:
//	          uvarint length of what it shares with the one before (0 for the first of a block),
//	          uvarint length of the rest, the rest, uvarint number of its postings, uvarint their bytes
//
// The postings of a term are in groups of 128:
//
//	group     uvarint last row of the group − last row of the group before (−1 before the first),
//	          uvarint bytes of the postings that follow; 0: a bitmap follows, where that is shorter, with a
//	          bit for each row behind the group before, the lowest of each byte first, up to the last row:
//	          of postings that are all plain
//	posting   uvarint (row − row before)·2 + plain;
//	          plain 1: the word stands once in the content and nowhere else; plain 0: uvarint the set of
//	          fields that have it, one bit for each, and for each of them uvarint how often
//
// Which documents are in one segment depends on the order of writes; the bytes of a segment depend on
// its documents only. So merging segments gives the bytes that building one from their live documents
// gives.
//
// # State
//
// A Set is a list of segments, and of each which rows are dead (Dead) and where the row before or
// behind it in its session is not the next live row of the segment (Links). Sets are immutable: each
// change makes another one that shares what did not change.
//
// # Score
//
// For the different terms t of a query, in its order, and a document D
//
//	c(t,D)   = tf(t, content of D) / (1 − b + b·|D|/avg)                     b = 0.4
//	w(t,D)   = c(t,D) + Σ weight(field)·tf(t, field of D) + 0.5·c(t, before D) + 0.2·c(t, behind D)
//	score(D) = Σ idf(t) · w·(k1+1) / (w + k1)                                k1 = 1.2
//	idf(t)   = ln(1 + (N − d + 0.5)/(d + 0.5))     d = min(N, 1.7·df)
//
// Words that are Quiet add nothing. A document that a word excludes (-word) has a weight of 0 for all others,
// and is not among the best of its session. Where only one word of a query is in any document, a document
// without the word gets score(D)·m/(m + k1), and 0.3 of that for its session. m is the least weight that a
// document with the word can have: 1/(1 − b + b·L/avg), L being the length of the longest content with the
// word, or 0.5 where that is less and a document has the word elsewhere only. So documents without the word
// come behind all that have it.
//
// before and behind are neighbours in the session, by time and id; |D| is the number of words of the
// content, avg its mean over all N documents, df the number of documents that have t themselves: with
// their neighbours' shares, 1 + 0.5 + 0.2 as many score for it. A name, other than in a query of names
// only, and unless it must be there or OR is beside it, counts in the name field only, and d is then the
// number of documents that have it there. A
// hit's score is its own, plus 0.3 times the sum of the three best scores in its session; a document
// without a session is a session of its own.
//
// All of these are numbers of live documents, and all sums are made in the order above. So the answer
// does not depend on how documents are distributed over segments: not in a single bit.
package words
