// Package manual writes the manual pages of memctl: memctl.1, and one page for each command below
// it, such as memctl-put.1 and memctl-sessions-list.1. They are made from the help texts.
//
// The help text of a command is plain text without markup. This package writes it as roff itself,
// because a generator would read it as Markdown, in which _ and * would be lost. Paragraphs are
// filled; one with indented lines is kept unchanged.
//
// # Invariants
//
// The same commands, version and date give the same bytes. No line of a text can begin a request of
// roff: a dot or an apostrophe at its beginning is escaped, and so is every backslash.
package manual
