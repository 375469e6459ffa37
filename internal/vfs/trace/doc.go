// Package trace writes one line for each operation on a vfs.FS, for golden files: a changed order of create, write,
// sync, rename, folder sync, lock and store is then visible in a review.
//
// A line is the operation, the path below the root, its arguments and, if it failed, the error
// without paths:
//
//	create tmp/0.tmp
//	write tmp/0.tmp off=0 size=1043
//	sync tmp/0.tmp
//	rename tmp/0.tmp memories/a.json
//	syncdir memories
//	lock wal/append.lock exclusive
//	store wal/shared word=3 value=65640
//	open memories/b.json: file does not exist
package trace
