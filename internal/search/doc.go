// Package search answers queries over a store: by a vector, by similarity to another document, by words.
//
//	search.go       a query and its limits; the best results are found, then read with all checks
//	vector.go       by vectors: exact. If filters leave few memories, these are compared; otherwise
//	                the filters are applied to candidates, nearest first. Sections of notes are all
//	                compared, and merged with the memories by their scores
//	notes.go        notes: sections are ranked with memories, and the best of each note is its hit
//	words.go        by words: queries the views of words; filters that it does not support, or only
//	                in part, are applied to candidates, best first
//	boost.go        raises the scores of the best hits by time and by quickrecal_score
//	assemblies.go   assemblies, by their composites
//
// Documents that cannot be read do not prevent others from being found.
package search
