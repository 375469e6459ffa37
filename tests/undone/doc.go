// Package undone tests Store.Undo: each document has the bytes of before, beside other writers, kills, power cuts and
// full disks.
package undone
