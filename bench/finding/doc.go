// Command finding measures search by words in stores of several sizes, and compares it with bleve (English stems and
// stop words, BM25) and SQLite's FTS5 (modernc, without cgo; porter stems, bm25) in the same run:
//
//	go run ./finding [-n 10000,100000] [-data locomo10.json] [-calls 200] [-rounds 3] [-puts 10000] [-dims 0] [-engines varve,bleve,fts5] [-before MEMCTL] [-dir DIR]
//
// A memory has some 500 bytes of text, and a session has 100 memories. With -data (LoCoMo, which is not part of this
// project) the texts are turns of its conversations, put together at random, and the queries are its questions. Without
// -data, texts are made of 50,000 words, the k-th with a frequency proportional to 1/k, and a query has six of them.
// The columns:
//
//	build      seconds until all memories are durable and can be found, and the store is closed
//	index      bytes on disk for each memory that search by words takes; for FTS5 what the file has in addition to the
//	           texts, which bleve does not keep
//	disk       all that the engine has on disk, in blocks of the file system, for each memory
//	heap       how much Go's heap has grown from before opening to after the searches, without mapped files
//	first      the first search after opening, in milliseconds
//	all        the best 10 of all: median and 99th percentile in milliseconds
//	both       the best 10 by words and by a vector, with -dims (Varve only)
//	session    the best 10 of one session
//	four       the best 10 of all, in four processes at once, for engines that admit several
//	beside     the best 10 of all, while another goroutine puts memories one after the other
//	put        one of these puts, durable
//	page       the first 50 memories in one of five orders (Varve only), their documents included
//	sessions   all sessions (Varve only)
//	like       the best 10 for a text of 500 bytes; Varve searches for its 24 rarest words (Query.MaxRareTerms), the
//	           others for all words
//
// At the end, puts are measured one after the other, in turns in a store with the view of words and in one without it
// (-puts 0: no such measurement).
//
// The engine scan is Varve before it had the index: it counts the words of all memories in each search. It answers over
// the Model Context Protocol, which takes part of a millisecond; its single puts are not measured:
//
//	git worktree add /tmp/before c4da248^
//	(cd /tmp/before && go build -o /tmp/memctl-before ./cmd/memctl)
//	go run ./finding -engines varve,scan -before /tmp/memctl-before
//
// FTS5 has no stop words: it searches for all words of a query. Only one process at a time can open an index of bleve.
// The engines take turns in each round.
package main
