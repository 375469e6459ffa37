// Command finding measures search by words in stores of several sizes, beside bleve (English stems and stop
// words, BM25) and SQLite's FTS5 (modernc, without cgo; porter stems, bm25) in the same run:
//
//	go run ./finding [-n 10000,100000] [-data locomo10.json] [-calls 200] [-rounds 3] [-puts 10000] [-dims 0] [-engines varve,bleve,fts5] [-before MEMCTL] [-dir DIR]
//
// A memory has some 500 bytes of text, a session 100 memories. With -data (LoCoMo, which is not part of
// this project) texts are turns of its conversations, put together at random, and queries its questions;
// without, words of 50,000, the k-th as frequent as 1/k, and queries six of them. The columns:
//
//	build      seconds until all memories are durable and can be found, and the store is closed
//	index      what search by words takes on disk, in bytes for each memory; of FTS5 what the file has
//	           beyond the texts, which bleve does not keep
//	disk       all that the engine has on disk, in blocks of the file system, for each memory
//	heap       what Go's heap holds more behind the searches than before opening, mapped files not
//	           counted
//	first      the first search behind opening, in milliseconds
//	all        the best 10 of all: median and 99th percentile in milliseconds
//	both       the best 10 by words and by a vector, with -dims (Varve only)
//	session    the best 10 of one session
//	four       the best 10 of all, in four processes at once, of engines that admit a second one
//	beside     the best 10 of all, while another goroutine puts memories one after the other
//	put        one of these puts, durable
//	page       the first 50 memories in one of five orders (Varve only), their documents included
//	sessions   all sessions (Varve only)
//	like       the best 10 for a text of 500 bytes, by its 24 rarest words (Query.MaxRareTerms); the others take all
//
// In the end puts are measured, one after the other, in a store with the view of words and one without,
// in turns (-puts 0: not).
//
// The engine scan is Varve as it was before the index, which counts the words of all memories in each
// search. It answers over the Model Context Protocol, which takes part of a millisecond; its single puts are
// not measured:
//
//	git worktree add /tmp/before c4da248^
//	(cd /tmp/before && go build -o /tmp/memctl-before ./cmd/memctl)
//	go run ./finding -engines varve,scan -before /tmp/memctl-before
//
// FTS5 has no stop words: it looks for all words of a query. Of an index of bleve there is one process at a
// time. The engines take turns in each round.
package main
