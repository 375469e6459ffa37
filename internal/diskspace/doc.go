// Package diskspace reports whether the disk of a store is nearly full, in bytes or in inodes, and makes
// room on a full one.
package diskspace
