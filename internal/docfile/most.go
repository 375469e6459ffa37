package docfile

import (
	"fmt"
	"path/filepath"
	"strings"
)

// HashMost is the maximum size in bytes of a file that is hashed when it is moved to quarantine. Only the index and
// the vectors of millions of memories are larger; they are distinguished by size and time. Reading a sparse file of
// terabytes would take hours, under flush.lock.
const HashMost = 1 << 30

// documentMost is the maximum size of a document in bytes: no limit in config.json can allow a larger document.
const documentMost = 256 << 20

// hashMostOf returns the maximum size of a file that is hashed when it is moved to quarantine. The maximum depends on
// the kind of the file, which its path in the store shows.
func hashMostOf(rel string) int64 {
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	switch {
	case top == "wal", top == "vector_index", top == "backups", top == "quarantine",
		strings.HasPrefix(top, "memory_index"):
		return HashMost
	}
	return documentMost
}

// Unhashed returns the reason for which a file gets no hash when it is moved to quarantine: it is too large, or mostly
// holes. It returns "" for a file that is hashed. rel is the file's path in the store.
func Unhashed(rel string, size int64, sparse bool) string {
	if most := hashMostOf(rel); size > most {
		return fmt.Sprintf("not hashed: the file has %d bytes, the limit for its kind is %d", size, most)
	}
	if sparse {
		return fmt.Sprintf("not hashed: the file has %d bytes, most of them holes", size)
	}
	return ""
}
