// Package text finds words in texts.
//
// A word is a run of letters, digits and marks (Unicode L, N, M), case folded; all other characters
// separate words, including the apostrophe. Soft hyphens and joiners are ignored. Letters of full
// width equal those of ordinary width. Texts are not normalised and not stemmed: all languages are
// treated alike.
//
// Scripts that are written without spaces (Han, kana, Hangul, Bopomofo, Thai, Lao, Khmer, Myanmar)
// give each character, with the marks behind it, and each pair of neighbours, as words. A query
// searches for the pairs, and for a character only if it has no neighbours.
package text
