// Package manual writes the manual pages of memctl: memctl.1, and one page for each command below
// it, memctl-put.1, memctl-sessions-list.1. They are made of what the help shows.
//
// The text of a command is plain: nothing in it is markup. It is therefore written as roff here, and
// not by a generator that takes it for Markdown, where _ and * would be lost. Paragraphs are filled;
// one with indented lines is kept as it is.
//
// # Invariants
//
// The same commands, version and date give the same bytes. No line of a text can begin a request of
// roff: a dot or an apostrophe at its beginning is escaped, and so is every backslash.
package manual
