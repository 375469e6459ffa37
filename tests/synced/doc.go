// Package synced tests stores in folders that other programs synchronize or truncate: clones that pull
// from each other with git, and the small files that an operating system leaves after a crash. It has
// only tests.
package synced
