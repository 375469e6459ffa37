// Package diskspace says whether the disk of a store is about to be full: of bytes, or of inodes, and makes room on a
// full one.
package diskspace
