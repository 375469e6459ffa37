// Command chromem compares Varve with chromem-go, another embedded store of documents with vectors, which keeps one
// file for each document. Both store the same documents in one run. The command also shows what each of them makes of
// two kinds of loss.
//
//	go run ./chromem [-n 1000,10000] [-d 384] [-rounds 3] [-seed 1] [-dir DIR]
//
// A document has an id like doc-000017, a content of 1,000 bytes, two members of metadata and a random embedding, all
// generated from the seed. The engines take turns; chromem is first in odd rounds. Every number is the median of the
// rounds, with the least and the greatest beside it.
//
//	add        documents a second, until the call returns
//	settled    documents a second, until all files are on the disk too
//	open       milliseconds to open a store again in the same process (the pages are cached)
//	first      milliseconds of the first query after that; Varve reads the vectors only then
//	query      milliseconds for the nearest 10 with their contents, the median of at least 100 queries
//	heap       MiB of Go heap that the opened store holds, after a query
//	disk       MiB, the sizes of all files
//
// The engines do not promise the same when a document is added:
//
//	chromem    the file is created and written in place, without fsync: a killed process may leave one file empty or
//	           truncated, and a power failure may do that to any file
//	Varve      the document is in the log, after an fdatasync: each document by itself (one goroutine, or 64), or
//	           1,000 documents in one commit (PutAll)
//
// The column settled makes the engines comparable: it includes one syncfs after chromem's adds (on systems other than
// Linux an fsync of each file), and a Flush after Varve's, which returns when files and index are durable.
//
// Both search exactly, on all cores, and must find the same ids, except for neighbours that rounding exchanges.
//
// # Two losses
//
// chromem names a file by the first 32 bits of the SHA-256 of the id (hash2hex in its persistence.go), so two documents
// may get the same file. The command searches for two ids of the form doc-N with the same 32 bits, and adds both. By
// chance there is such a pair in every second store of 77,000 documents.
//
// For the second loss, one file of 1,000 documents is truncated to half of its length, or to nothing, as a process
// leaves it that is killed while it writes in place. Varve is then opened and verified, with and without a repair
// before. The same is done with Varve's document files alone, as in a clone by git, where no log and no archive has a
// second copy.
package main
