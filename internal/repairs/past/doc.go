// Package past reads the versions of a store's documents that log and archive still have: which
// versions existed, and the bytes of one of them. Damaged entries are skipped; verify reports them.
package past
