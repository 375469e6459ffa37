package docfile

import (
	"fmt"
	"path/filepath"
	"strings"
)

// HashMost is the size in bytes of the largest file that is hashed when it is set aside. It is enough for all files
// except the index and the vectors of millions of memories: these have no hash, and are distinguished by size and time.
// Reading a sparse file of terabytes would take hours, under flush.lock.
const HashMost = 1 << 30

// documentMost is a number of bytes above any limit that config.json can set for a document.
const documentMost = 256 << 20

// hashMostOf returns the size of the largest file that is hashed when it is set aside; it depends on the
// file's kind, as its path in the store shows.
func hashMostOf(rel string) int64 {
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	switch {
	case top == "wal", top == "vector_index", top == "backups", top == "quarantine",
		strings.HasPrefix(top, "memory_index"):
		return HashMost
	}
	return documentMost
}

// Unhashed returns why a file gets no hash when it is set aside: it is too large, or mostly holes. It returns
// "" for a file that is hashed. rel is its path in the store.
func Unhashed(rel string, size int64, sparse bool) string {
	if most := hashMostOf(rel); size > most {
		return fmt.Sprintf("not hashed: %d bytes, over the limit of its kind, %d", size, most)
	}
	if sparse {
		return fmt.Sprintf("not hashed: %d bytes, most of them holes", size)
	}
	return ""
}
