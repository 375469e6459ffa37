package docfile

import (
	"fmt"
	"path/filepath"
	"strings"
)

// HashMost is how large a file may be to be hashed when it is set aside. It is enough for
// all but the index and the vectors of millions of memories: these then have no hash, and
// are told apart by size and time. A sparse file of terabytes would take hours, under
// flush.lock.
const HashMost = 1 << 30

// documentMost is more than any limit of config.json lets a document have.
const documentMost = 256 << 20

// hashMostOf is HashMost for a file by its path in the store.
func hashMostOf(rel string) int64 {
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	switch {
	case top == "wal", top == "vector_index", top == "backups", top == "quarantine",
		strings.HasPrefix(top, "memory_index"):
		return HashMost
	}
	return documentMost
}

// Unhashed says why a file at a path in the store has no hash when it is set aside, "" when
// it is small enough and not sparse.
func Unhashed(rel string, size int64, sparse bool) string {
	if most := hashMostOf(rel); size > most {
		return fmt.Sprintf("not hashed: %d bytes, over the limit of its kind, %d", size, most)
	}
	if sparse {
		return fmt.Sprintf("not hashed: %d bytes, most of them holes", size)
	}
	return ""
}
