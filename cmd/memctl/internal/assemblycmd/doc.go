// Package assemblycmd is memctl assembly: one file for each command of the group, or for a few
// that are alike. Listed is an assembly as lists show it; memctl watch shows it too.
package assemblycmd
