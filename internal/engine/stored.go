package engine

import (
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/vfs"
)

// Matches compares a file's size and time with a line's. They are a filter only.
func Matches(line *index.Entry, info vfs.Info) bool {
	return info.Size == line.Size && SameTime(info.Mtime, time.UnixMicro(line.Mtime))
}

// SameTime compares in microseconds, which all file systems with sub-second
// times keep.
func SameTime(a, b time.Time) bool { return a.UnixMicro() == b.UnixMicro() }

// TimeOf is the time that the file of a line has.
func TimeOf(line *index.Entry) time.Time { return time.UnixMicro(line.Mtime).UTC() }

// MemoryKey is the key of a memory in the log.
func MemoryKey(id string) string { return kind.Memories.Key(id) }
