// Package assemblycmd is memctl assembly: one file for each command of the group, or for a few
// similar ones. Listed is an assembly as lists and memctl watch show it.
package assemblycmd
