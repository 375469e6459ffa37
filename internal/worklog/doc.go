// Package worklog applies the log's entries about working memory to the file of a scope, without an
// open store: for restoring a backup, for verify and for repair.
package worklog
