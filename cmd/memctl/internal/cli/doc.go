// Package cli has what all commands of memctl share.
//
//	run, program   App, one run of the program: its flags, its streams, its failures
//	locate, open   which store, and how it is opened and closed: OnStore, With
//	failure        an error as the user sees it: kind, message, remedy
//	exitcode       the exit codes, and which of several counts
//	topic          the help topic exit-codes
//	output         stdout and stderr: no text of a store reaches a terminal as it is
//	document       the one JSON object of --json
//	signals, pipe  a signal ends a command within 2 s; a closed pipe is no crash
//	table, text    how ids, sizes, times and lists are written
//	args, ids      arguments, and commands that take several ids
//
// A command is a function that takes an App and gives a cobra.Command whose RunE is made by
// App.OnStore, or by App.Do where it needs more than the store. App.Say confirms what was done,
// and is silent with -q; what was asked for goes to App.Out if App.Document is nil, and else to
// App.Document. A nil Document takes everything and does nothing. It returns its error, or calls
// App.Fail and goes on.
//
// No command writes to a stream in another way; TestOutputIsTheOnlyWay looks.
package cli
