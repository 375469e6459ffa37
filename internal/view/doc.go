// Package view says what a view is, and what it says of itself. A view is what a store derives
// from its log and its documents: vectors, counts, working memory. Source is an open store as
// what compares a view with the log and the documents sees it; what is found is a
// repair.Finding.
package view
