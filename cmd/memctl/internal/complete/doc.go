// Package complete offers a shell what an argument or the value of a flag may be: ids, sessions and
// scopes of the store, and lists of words.
//
// # Invariants
//
// A store is opened only to look (cli.Look): nothing is created, locked, repaired or written, and no
// message is printed. Where there is no store, or it cannot be read, nothing is offered. An answer
// takes limit at most, whatever the disk does; what was found until then is offered.
//
// At most Most words are offered: those that begin with what was typed, and where nothing was typed
// the memories that were written last. Words that a shell would have to quote are left out, so that
// no id in a store, which anybody may have written, becomes more than one word of a command. A
// description is the beginning of the content, on one line, without control characters.
package complete
