// Package undone tests Store.Undo: each document gets its previous bytes, beside other writers, kills,
// power cuts and full disks.
package undone
