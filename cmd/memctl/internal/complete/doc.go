// Package complete proposes to a shell the values of an argument or of a flag: ids, sessions and
// scopes of the store, and lists of words.
//
// # Invariants
//
// A store is opened only to look (cli.Look): nothing is created, locked, repaired or written, and
// no message is printed. If there is no store, or it cannot be read, nothing is proposed. An answer
// takes at most limit, whatever the disk does; what was found until then is proposed.
//
// At most Most words are proposed: those that begin with the typed text, or, if nothing was typed,
// the memories that were written last. Words that a shell would have to quote are omitted, so that
// no id in a store, which may come from anyone, becomes more than one word of a command. A
// description is the beginning of the content, on one line, without control characters.
package complete
