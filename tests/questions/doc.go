// Package questions asks 200 questions of a store: 40 about notes, 40 about facts, 40 about code, 40 in
// German, 40 in Chinese. Each has one memory with the answer, in words other than those of the question
// where users would use others. All were written for this package; nothing in the program was tuned to
// them.
//
// data/ has a file for each kind, with these lines:
//
//	? a question
//	= the memory with its answer, with #tags, the @title of a piece of code, or the @category of a fact
//	a the beginning of memories that answer nothing
//	z the end of such memories
//
// A kind has such memories for every combination of a beginning and an end, 437 of them or more. All
// kinds are in one store, shuffled by a seed, ten to a session.
//
// Scan is the search by words as it was before it had an index: BM25 over the words of the contents,
// without stems. TestQuestions compares the results with minimum figures and with those of Scan;
// bench/questions prints the figures.
package questions
