// Package text finds words in texts and ranks the texts by BM25. It does not depend on the source
// of the texts, and keeps none of them.
//
// # Words
//
// A word is a run of letters, digits and marks (Unicode L, N, M), case folded; all other characters
// separate words, including the apostrophe. Soft hyphens and joiners are ignored. Letters of full
// width equal those of ordinary width. Texts are not normalised and not stemmed: all languages are
// treated alike.
//
// Scripts that are written without spaces (Han, kana, Hangul, Bopomofo, Thai, Lao, Khmer, Myanmar)
// give each character, with the marks behind it, and each pair of neighbours, as words. A query
// searches for the pairs, and for a character only if it has no neighbours.
//
// # Rank
//
// For the terms t of a query, each as often as it occurs there, the score of a text D is the sum of
//
//	idf(t) · tf·(k1+1) / (tf + k1·(1 − b + b·|D|/avg))    k1 = 1.2, b = 0.75
//	idf(t) = ln(1 + (N − df + 0.5)/(df + 0.5))
//
// where tf is how often t occurs in D, |D| the number of words in D (a character of a script
// without spaces counts as one, a pair as none), avg its mean over all N texts, df the number of
// texts that contain t.
//
// # One pass in bounded memory
//
// idf and avg are known only when every text has been read; the texts are not kept. But whatever
// their values, of two texts that have each term equally often the shorter one ranks first. So a
// Collector keeps, for each combination of term counts that occurs, the best k by length, and ranks
// those at the end: the result and its order are the same as by the formula over all texts. When
// there are too many combinations it stops this, keeps only the numbers, and reports it; the caller
// then reads the texts a second time, with a Top, which needs k places and the numbers.
package text
