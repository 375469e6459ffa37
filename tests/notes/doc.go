// Package notes tests the notes of a store: package note, internal/notes, and how the other packages
// handle notes as one kind of document.
package notes
