// Package text finds words in texts.
//
// A word is a run of letters, digits and marks (Unicode L, N, M), case folded; all other characters
// separate words, including the apostrophe. Soft hyphens and joiners are ignored. Letters of full
// width equal those of ordinary width. Texts are not normalised and not stemmed: all languages are
// treated alike.
//
// Scan is the second version, for the second version of the terms of package analyzer. It converts each run of letters,
// marks and numbers to NFKC with full case folding, so that canonically equal texts are equal. Marks that follow no
// letter, and invisible characters, are ignored. A number like ½ ends the number before it. Signs that stand for
// letters (№, ㎏) are words, and emoji are Symbols, without their colours. More are additional forms of names: C++, C#,
// 2.10, R&D, dont for don't, and the parts of getUserById. Each and Spans are the first version.
//
// For scripts that are written without spaces (Han, kana, Hangul, Bopomofo, Thai, Lao, Khmer, Myanmar) each character,
// with the marks after it, is a word, and so is each pair of adjoining characters. A query searches for the pairs, and
// for a character only if it has no neighbours.
package text
