// Package space says whether the disk of a store is about to be full: of bytes, or of inodes.
package space
