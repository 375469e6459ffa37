// Package assemblycmd has the commands memctl assembly: one file for each command of the group, or
// for a few similar ones. Listed is an assembly in the form that lists and memctl watch show.
package assemblycmd
