// Package questions asks 200 questions of a store: 40 about notes, 40 about facts, 40 about code, 40 in
// German, 40 in Chinese. Each has one memory with the answer, in other words than the question where
// people would use others. All were written for this package; nothing in the program was fitted to them.
//
// data/ has a file for each kind, of lines:
//
//	? a question
//	= the memory with its answer, with #tags, the @title of a piece of code, or the @category of a fact
//	a the beginning of memories that answer nothing
//	z the end of such memories
//
// A kind has these memories of every beginning with every end, 437 of them or more. All kinds are in
// one store, mixed by a seed, ten to a session.
//
// Scan is what search by words was before it had an index: BM25 over the words of the contents, by no
// stems. TestQuestions holds what is found to floors and to what Scan finds; bench/questions prints the
// figures.
package questions
