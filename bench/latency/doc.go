// Command latency measures what one call costs in stores of several sizes:
//
//	go run ./latency [-n 1000,10000,100000] [-d 384] [-calls 200] [-rounds 3] [-seed 1] [-dir DIR]
//
// A memory has some 300 bytes of words (5,000 of them, the k-th as frequent as 1/k), a session of
// 100 memories, and an embedding of d random numbers. The columns, each the median in milliseconds
// of all rounds' calls, with the 99th percentile beside it:
//
//	open      opening a store that was closed, with its pages cached, until the first memory is read
//	put       a new memory with an embedding, durable when the call returns, one after the other
//	get       one memory by its id, decoded
//	session   the 100 memories of a session
//	words     the best 10 for two words
//	vector    the nearest 10 of all, with their memories
//	command   memctl get ID: a process, from start to end
//
// Searches have few calls where a call is long: a round ends after 5 s.
package main
