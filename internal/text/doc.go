// Package text finds words in texts.
//
// A word is a run of letters, digits and marks (Unicode L, N, M), case folded; all other characters
// separate words, including the apostrophe. Soft hyphens and joiners are ignored. Letters of full
// width equal those of ordinary width. Texts are not normalised and not stemmed: all languages are
// treated alike.
//
// Scan is the second version, of the second version of the terms of package analyzer. It brings texts into
// NFKC with their cases folded in full, run by run of letters, marks and numbers, so that canonically equal
// texts are equal. Marks that follow no letter, and invisible characters, are ignored; a number like ½ ends
// the number before it; signs that stand for letters (№, ㎏) are words, and emoji are Symbols, without their
// colours. More are the forms that names have beside their words: C++, C#, 2.10, R&D, dont for don't, and
// the parts of getUserById. Each and Spans are the first version.
//
// Scripts that are written without spaces (Han, kana, Hangul, Bopomofo, Thai, Lao, Khmer, Myanmar)
// give each character, with the marks behind it, and each pair of neighbours, as words. A query
// searches for the pairs, and for a character only if it has no neighbours.
package text
