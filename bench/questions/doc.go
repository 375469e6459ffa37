// Command questions searches a store for the 200 questions of tests/questions. It prints for how many
// questions of each kind the answer is among the first 10 hits, and the mean of 1/rank:
//
//	go run ./questions [-languages en,none,de] [-order 1] [-missed]
//
// The output has a line for each value of text_language, found by the index of words, and a line for the
// search by words as it was before it had an index (scan). -order is the seed of the order of the memories,
// which decides which memories are neighbours in a session. -missed prints the questions whose answer is not
// among the first 10 hits.
package main
