// Package upkeep has the commands that maintain a store as a whole: status, verify, repair,
// rebuild-index, reindex, purge, backup, restore, migrate. Each has a file; the exported functions
// return the commands. Package varve and the packages below it implement the operations.
package upkeep
