// Package upkeep has the commands that look after a store as a whole: status, verify, repair,
// rebuild-index, reindex, purge, backup, restore, migrate. A file for each; the exported
// functions give the commands. What they do to a store is done by package varve and those
// below it.
package upkeep
