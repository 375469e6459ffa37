// Package worklog applies the entries that the log has of working memory to the file of a scope:
// for a backup that is restored, for verify and for repair, which have no open store.
package worklog
