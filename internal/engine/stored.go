package engine

import (
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
)

// Matches reports whether a file has the size and time that an index line records. The match is only a quick filter:
// the content may still differ.
func Matches(line *index.Entry, info vfs.Info) bool {
	return info.Size == line.Size && SameTime(info.Mtime, time.UnixMicro(line.Mtime))
}

// SameTime reports whether two times are equal in whole microseconds, which all file systems with sub-second
// times keep.
func SameTime(a, b time.Time) bool { return a.UnixMicro() == b.UnixMicro() }

// TimeOf returns the modification time that an index line records for its file.
func TimeOf(line *index.Entry) time.Time { return time.UnixMicro(line.Mtime).UTC() }

// MemoryKey returns the key of a memory in the log.
func MemoryKey(id string) string { return kind.Memories.Key(id) }
