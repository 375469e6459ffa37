// Package cli has what all commands of memctl share.
//
//	run, program   App, one run of the program: its flags, its streams, its failures
//	locate, open   which store is used, and how it is opened and closed: OnStore, With
//	failure        an error as the user sees it: kind, message, remedy
//	exitcode       the exit codes, and which of several is used
//	topic          the help topic exit-codes
//	output         stdout and stderr: text of a store is escaped before it reaches a terminal
//	document       the one JSON object of --json
//	signals, pipe  a signal ends a command within 2 s; a closed pipe is handled
//	table, text    how ids, sizes, times and lists are written
//	args, ids      arguments, and commands that take several ids
//
// A command is a function that takes an App and returns a cobra.Command whose RunE is made by
// App.OnStore, or by App.Do if it needs more than the store. App.Say confirms what was done, and is
// silent with -q; results are written to App.Out if App.Document is nil, otherwise to App.Document.
// A nil Document accepts everything and does nothing. A command returns its error, or calls
// App.Fail and continues.
//
// No command writes to a stream in another way; TestOutputIsTheOnlyWay checks that.
package cli
