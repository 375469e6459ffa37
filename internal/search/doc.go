// Package search answers queries over a store: by a vector, by similarity to another document, by
// words.
//
//	search.go       a query and its limits; the best results are found, then read with all checks
//	vector.go       by vectors: exact; what filters leave by their words is compared, or they are applied
//	                to candidates, nearest first
//	words.go        by words: the view of them is asked, filters that it does not know, or only in part,
//	                are applied to candidates, best first
//	boost.go        the best of either raised by when they happened, and by quickrecal_score
//	assemblies.go   assemblies, by their composites
//
// Documents that cannot be read do not prevent others from being found.
package search
