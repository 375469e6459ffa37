// Command memctl works on a Varve store from the shell. It is thin: what a
// store does is done by package varve and those below it; here are arguments,
// words and exit codes.
//
// # The store
//
// Named by --store, by MEMCTL_STORE, or else the nearest folder, from the
// current one upwards, that is a store (its config.json has the member "varve")
// or holds a folder storage/ that is one. Only init makes a store, and import
// where the store was named. Commands that write flush before they end; those
// that read open the store read-only where it cannot be written; status, config
// and verify always do, but that status makes of a clone a store.
//
// # Output
//
// Results go to stdout, all else to stderr. With --json exactly one document is
// on stdout, a JSON object, also when the command fails; docs/json.md draws the
// document of each command, and TestJSONDocuments holds both to each other.
//
// # Exit codes
//
// See internal/cli/exitcode.go. Of several failures the gravest decides; those that do not
// end the command (one of several ids is missing) let the rest go on.
//
// # How it is laid out
//
// A command is a file, and a line in root.go. A new one goes beside those that are like it:
//
//	cmd/memctl             on memories, and on the store's settings
//	internal/assemblycmd   memctl assembly
//	internal/workingcmd    memctl working
//	internal/mcpcmd        memctl mcp
//	internal/upkeep        on the store as a whole: status, verify, repair, purge, backup, …
//
// What they share:
//
//	internal/cli      the frame: which store, streams, failures, exit codes, printing
//	internal/intake   reading documents, and importing
//	internal/diff     comparing two documents
//
// run is the whole program with its streams and its environment passed in. A test runs it in
// its own process (inProcess), or as a program (testdata/script).
package main
