// Package workingcmd has the commands memctl working: values, task, scratchpad, checkpoints and
// export, one file for each. scopeApp is cli.App with the scope that --scope names; onScope returns
// the RunE of a command that uses that scope.
package workingcmd
