// Package search answers queries over a store: by a vector, by what is like another
// document, by words.
//
//	search.go       a query: its limits; the best are found, then read with all checks
//	vector.go       by vectors: exact; filters are asked about candidates, nearest first
//	text.go         by words: a scan of all contents that pass the filters, see package text
//	content.go      the contents for that, read past the cache
//	assemblies.go   assemblies, by their composites
//
// What cannot be read does not keep the others from being found.
package search
