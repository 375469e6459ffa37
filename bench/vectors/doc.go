// Command vectors measures exact search for the nearest 10 beside FAISS, in one
// run, on one file, beside what the machine's memory yields.
//
//	go run ./vectors [-n 10000,100000] [-d 768] [-metric ip|l2] [-rounds 5] [-dir DIR]
//
// It writes n random vectors with package vector, and lets both search in that
// file: Varve where it lies, mapped; FAISS (python3-faiss of Debian, read_index)
// in its own memory. Each with one thread and with two, in turn, each round
// several queries for at least a second in all; the numbers are medians of all
// queries. The answers are compared. Beside them stands how fast a loop of loads
// (AVX2; elsewhere eight bytes at a time) reads as many bytes of memory, by as
// many threads.
//
// Opening is that of the vectors, nine times, with their pages cached.
//
// -n 1000000 takes 3 GB on the disk and twice that of memory.
//
// -store fills a whole store instead, settles it, and opens it again once a round:
// what opening takes, the first get and the first searches, with their pages
// cached. A million of 384 dimensions take 9 GB.
package main
