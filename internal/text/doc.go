// Package text finds words in texts.
//
// The rules for words have two versions, as the terms of package analyzer do. No version stems words: all languages
// are treated alike.
//
// In the first version (Each, Spans) a word is a run of letters, digits and marks (Unicode L, N, M), case folded. All
// other characters separate words, including the apostrophe. Soft hyphens and joiners are ignored. Letters of full
// width equal those of ordinary width. Texts are not normalised.
//
// In the second version (Scanner.Scan) each run of letters, marks and numbers is converted to NFKC with full case
// folding, so that canonically equal texts have equal words. Marks that follow no letter, and invisible characters, are
// ignored. A number like ½ ends the number before it. Signs that stand for letters (№, ㎏) are words, and an emoji is a
// Symbol, without its colour. Scan also reports additional forms (type More): C++, C#, 2.10, R&D, dont for don't, and
// the parts of getUserById.
//
// In scripts that are written without spaces (Han, kana, Hangul, Bopomofo, Thai, Lao, Khmer, Myanmar) each character,
// with the marks after it, is a word, and so is each pair of adjoining characters. A query searches for the pairs; it
// searches for a single character only if that character has no neighbours.
package text
