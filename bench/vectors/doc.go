// Command vectors measures exact search for the nearest 10 vectors, and compares it with FAISS and with
// the bandwidth of the machine's memory, in one run and on one file.
//
//	go run ./vectors [-n 10000,100000] [-d 768] [-metric ip|l2] [-rounds 5] [-dir DIR]
//
// It writes n random vectors with package vector, and both search in that file: Varve maps it, and FAISS
// (python3-faiss of Debian, read_index) reads it into its own memory. They take turns, with one thread and
// with two. Each round has several queries, which take at least a second in all; the numbers are medians of
// all queries. The answers are compared. For comparison, the output has the time in which a loop of loads
// (AVX2; on other processors eight bytes at a time) reads as many bytes of memory with as many threads.
//
// The time of opening is measured nine times, for the vectors alone, with their pages cached.
//
// -n 1000000 takes 3 GB on the disk and twice that of memory.
//
// -store fills a whole store instead, flushes it, and opens it again once a round. It measures opening, the
// first get and the first searches, with the pages cached. A million vectors of 384 dimensions take 9 GB.
package main
