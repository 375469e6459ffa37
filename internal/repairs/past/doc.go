// Package past reads the versions of documents that log and archive of a store still have: which
// versions existed, and the bytes of one of them. It skips damaged entries; verify reports them.
package past
