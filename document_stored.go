package varve

import (
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
)

// matches compares a file's size and time with a line's. They are a filter only.
func matches(line *index.Entry, info vfs.Info) bool {
	return info.Size == line.Size && sameTime(info.Mtime, time.UnixMicro(line.Mtime))
}

// sameTime compares in microseconds, which all file systems with sub-second
// times keep.
func sameTime(a, b time.Time) bool { return a.UnixMicro() == b.UnixMicro() }

func timeOf(line *index.Entry) time.Time { return time.UnixMicro(line.Mtime).UTC() }

// key is the key of a memory in the log.
func key(id string) string { return string(rune(record.Memory)) + id }
