// Package text finds words in texts and ranks the texts by BM25. It knows
// nothing of where texts come from, and keeps none of them.
//
// # Words
//
// A word is a run of letters, digits and marks (Unicode L, N, M), case folded;
// all else stands between words, an apostrophe too. Soft hyphens and joiners
// are not there. Letters of full width are those of ordinary width. Texts are not
// normalised and not stemmed: it is the same for every language.
//
// Scripts that are written without spaces (Han, kana, Hangul, Bopomofo, Thai,
// Lao, Khmer, Myanmar) give each character, with the marks behind it, and each
// pair of neighbours. A query looks for the pairs, and for a character only where
// it stands alone.
//
// # Rank
//
// For the terms t of a query, each as often as it stands there, the score of a
// text D is the sum of
//
//	idf(t) · tf·(k1+1) / (tf + k1·(1 − b + b·|D|/avg))    k1 = 1.2, b = 0.75
//	idf(t) = ln(1 + (N − df + 0.5)/(df + 0.5))
//
// where tf is how often t stands in D, |D| the number of words in D (a character
// of a script without spaces counts as one, a pair as none), avg its mean over
// all N texts, df the number of texts that have t.
//
// # One pass in bounded memory
//
// idf and avg are known when every text has been seen; the texts are not kept.
// But whatever they turn out to be, of two texts that have each term equally
// often the shorter one ranks first. So a Collector keeps, for each combination
// of term counts that it meets, the best k by length, and ranks those at the
// end: the same ones, in the same order, as the formula over all. When the
// combinations are too many it gives that up, keeps the numbers alone, and says so; a caller that
// sees that goes over the texts once more, with a Top, which needs k places and the numbers.
package text
