// Package analyzer splits texts into terms: words without case, accents and, in English, endings. Chinese, Japanese and
// Korean have no spaces between words: each of their characters is a term, and each pair of them.
//
// The terms have a version. In the second version, texts that look equal to a reader have equal terms (NFKC, full case
// folding; see package text), stop words have terms of their own (see Common), and names with signs, numbers with
// points, parts of identifiers and emoji have terms beside those of their words (see text.More). The first version is
// the only one that programs without wal.FeatureTerms can read; files keep it until that feature is raised.
package analyzer
