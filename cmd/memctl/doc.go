// Command memctl manages a Varve store from the shell. It is thin: package varve and the packages
// below it implement the operations; this command has the arguments, the messages and the exit
// codes.
//
// # The store
//
// The store is named by --store or VARVE_STORE, or else is the nearest folder, from the current
// one upwards, that is a store (its config.json has the member "varve") or contains a folder
// storage/ that is one. Only init creates a store, and import if the store was named. Commands
// that write flush before they end. Commands that read open the store read-only where it cannot be
// written; status, config, doctor and verify always open it read-only, except that status makes a clone a
// store.
//
// # Output
//
// Results go to stdout, everything else to stderr. With --json, stdout has exactly one document, a
// JSON object, also when the command fails; docs/json.md describes the document of each command,
// and TestJSONDocuments compares the two.
//
// # Exit codes
//
// See internal/cli/exitcode.go; memctl help exit-codes prints them. Of several failures the gravest
// decides. A failure that concerns one of several ids (a missing one) does not end the command.
//
// # How it is laid out
//
// Each command has a file, and a line in root.go. A new command goes beside similar ones:
//
//	cmd/memctl             memories, and the settings of the store
//	internal/assemblycmd   memctl assembly
//	internal/notecmd       memctl note
//	internal/workingcmd    memctl working
//	internal/mcpcmd        memctl mcp
//	internal/servicecmd    memctl service
//	internal/remotecmd     memctl remote and clone
//	internal/upkeep        the store as a whole: status, verify, repair, purge, backup, …
//	internal/doctorcmd     doctor
//
// What they share:
//
//	internal/cli      the frame: which store, streams, failures, exit codes, printing
//	internal/intake   reading documents, and importing
//	internal/adopted  which folders elsewhere are links to notes
//	internal/complete what a shell is offered for an argument
//	internal/manual   the manual pages
//
// A new command also has a row in docs/json.md and a call in json_test.go, cases in
// terminal_linux_test.go and command_cases_test.go, a line in CHANGELOG.md, and, where it
// does more than print, a script in testdata/script. The first command names what is missing, the
// second runs it all:
//
//	go test ./cmd/memctl -run 'JSON|Tables|Reference'
//	VARVE_LONG=1 go test ./cmd/memctl -run 'JSON|Tables|Terminal|Signal|Scripts'
//
// One that opens no store belongs in storeless (newer_test.go), one that writes without waiting for
// the locks of writers in writing (process_unix_test.go), and any other one in linkCommands
// (links_unix_test.go).
//
// docs/reference is made from the commands, and the examples of docs/ are run:
//
//	go test ./cmd/memctl -run TestReference -update
//	VARVE_CI=1 go test ./cmd/memctl -run TestDocsExamples
//
// run is the whole program with its streams and its environment passed in. A test runs it in
// its own process (inProcess), or as a program (testdata/script).
package main
