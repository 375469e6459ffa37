package memstore

import "time"

// Kind is a kind of document that a search finds.
type Kind string

// The kinds of documents that a search finds.
const (
	KindMemory Kind = "memory"
	KindNote   Kind = "note"
)

// NoteSection is the place in a note that a search has found: what is below a heading, or a part of that of about 2,000
// characters.
type NoteSection struct {
	Path                 string
	Version              uint64
	CreatedAt, UpdatedAt time.Time
	Headings             []string // the heading of the section behind those above it; none before the first
	From, To             int      // its lines, from 1
	Text                 string   // of these lines
}
