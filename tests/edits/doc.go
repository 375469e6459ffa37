// Package edits tests edits of a store's files by hand: adoption, what is set aside, links, deletions.
package edits
