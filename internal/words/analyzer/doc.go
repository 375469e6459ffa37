// Package analyzer makes terms of texts: words without case, accents and, in English, endings. Chinese, Japanese and
// Korean have no spaces: each of their characters is a term, and each pair of them.
//
// The terms have a version. In the second one texts that are equal to a reader have equal terms (NFKC, the cases
// folded in full; see package text), words that every text has are terms of their own kind (Common), and names with
// signs, numbers with points, parts of identifiers and emoji are terms beside those of the words (text.More). The
// first version is what programs know that lack wal.FeatureTerms: files have it until the feature is raised.
package analyzer
