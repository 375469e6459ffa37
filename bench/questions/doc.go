// Command questions asks the 200 questions of tests/questions of a store, and prints for how many of each
// kind the answer is among the first 10 hits, and the mean of 1/place:
//
//	go run ./questions [-languages en,none,de] [-order 1] [-missed]
//
// One line for each text_language, by the index of words; one for what search by words was before it had
// an index (scan). -order is the seed of the order of the memories, which are neighbours in sessions;
// -missed names the questions whose answer is not among the first 10.
package main
