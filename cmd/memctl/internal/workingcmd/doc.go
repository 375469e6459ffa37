// Package workingcmd is memctl working: values, task, scratchpad, checkpoints and export, a file
// for each. scopeApp is cli.App with the scope that --scope names; onScope makes a command that
// works on that scope.
package workingcmd
