// Package notes tests the notes of a store: package note, internal/notes, and what the other packages do with notes
// as with any kind of document.
package notes
