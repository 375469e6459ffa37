// Package synced tests stores in folders that other programs keep in step or cut short: clones that
// pull from each other with git, and what an operating system leaves of small files after it
// crashed. It has only tests.
package synced
