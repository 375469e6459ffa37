// Package analyzer makes terms of texts: words without case, accents and, in English, endings, without
// those that every text has. Chinese, Japanese and Korean have no spaces: each of their characters is a
// term, and each pair of them.
package analyzer
