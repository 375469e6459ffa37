package memstore

import "time"

// Kind is a kind of document that a search finds.
type Kind string

// The kinds of documents that a search finds.
const (
	KindMemory Kind = "memory"
	KindNote   Kind = "note"
)

// NoteSection is the section of a note that a search has found: the text below a heading, or a part of that
// text of about 2,000 characters.
type NoteSection struct {
	Path                 string
	Version              uint64
	CreatedAt, UpdatedAt time.Time
	// the headings above the section and its own heading, the outermost first; none for text before the first
	// heading
	Headings []string
	From, To int    // numbers of its first and last line; the first line of a note is 1
	Text     string // text of these lines
}
