// Command chromem measures Varve beside chromem-go, another embedded store of
// documents with vectors that keeps one file each, on the same documents in one
// run; and shows what each makes of two losses.
//
//	go run ./chromem [-n 1000,10000] [-d 384] [-rounds 3] [-seed 1] [-dir DIR]
//
// A document has an id like doc-000017, a content of 1,000 bytes, two members of
// metadata and a random embedding, all from the seed. The engines take turns,
// chromem first in odd rounds. Every number is the median of the rounds, with
// the least and the greatest beside it.
//
//	add        documents a second, until the call returns
//	settled    documents a second, until all files are on the disk too
//	open       ms, of what was closed, by the same process (the pages are cached)
//	first      ms of the first query behind that: Varve reads the vectors only now
//	query      ms for the nearest 10 with their contents, median of 100 queries and more
//	heap       MiB of Go heap that the opened store holds, after a query
//	disk       MiB, the sizes of all files
//
// What "added" promises is not the same:
//
//	chromem    written, by create and write in place, without fsync: a killed process
//	           leaves one file empty or cut, and power that goes takes any of them
//	Varve      in the log behind an fdatasync: each document of its own (one or 64
//	           goroutines), or 1,000 in one commit (PutAll)
//
// Settled makes them alike: behind chromem's adds one syncfs (elsewhere than on
// Linux an fsync of each file), behind Varve's a Flush, which ends with files and
// index durable.
//
// Both search exactly, on all cores, and must find the same ids (except for neighbours that
// rounding exchanges).
//
// # Two losses
//
// chromem names a file by the first 32 bits of the id's SHA-256 (hash2hex in its
// persistence.go). Two ids of the form doc-N that meet there are searched for and
// added. By chance two meet in every second store of 77,000 documents.
//
// Of 1,000 documents one file is cut to its half, or to nothing, as a process
// leaves it that is killed while it writes in place. Varve is then opened and
// verified, or repaired first; and both again with its files alone, as a clone by
// git has them, where no log and no archive has a second copy.
package main
