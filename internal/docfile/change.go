package docfile

import (
	"encoding/json"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// Change is what a round does to one document. A round has at most one for each place.
type Change struct {
	Folder *Folder
	Name   string // file name in the folder

	// Delete takes the document away; else Bytes are what it holds, empty only where
	// FolderOptions.Empty is set, or Data gives them when its turn comes, so that not all need be in memory.
	Delete bool
	Bytes  []byte
	Data   func() ([]byte, error)
	Mtime  time.Time

	Before Before

	// Ours is asked about a file that is not what Before says: do we know these
	// bytes as a version of this document? nil: we do not. With several workers
	// it and Data are called from several goroutines.
	Ours func(info vfs.Info, data func() ([]byte, error)) bool

	// Keep: a file that is not ours stays in its place, and the change is not made: what was last written to the disk
	// wins, and its reader adopts it. So does a file that has the bytes of the change already, with its time. Only
	// after a crash, when a place may hold anything, is it set aside as elsewhere.
	Keep bool
	// Found: the bytes were found in the place, with Mtime. A file that is gone since was removed by another program, and
	// is not put there again, except after a crash.
	Found bool

	// For the note, should an edit be set aside.
	ID      string
	Version uint64
	Known   json.RawMessage // the index line of what we believe stands there
}

// Before is what we believe stands in a document's place. The zero value: nothing.
type Before struct {
	Exists bool
	Size   int64
	Mtime  time.Time
	// Hash is the content hash as the index spells it ("sha256:…"). When given,
	// a file of the right size and mtime is read and hashed too; "": size and mtime do.
	Hash string
}

func (b Before) matches(info vfs.Info) bool {
	return b.Exists && b.Size == info.Size && b.Mtime.Equal(info.Mtime)
}

// Edit is a file that was not ours: somebody made it or saved into it. It lies
// in quarantine/, durably, with a note.
type Edit struct {
	// Change is the index of the change that met it; -1: it was found in tmp/,
	// saved into after it had been displaced, or left there by a process that died.
	Change int
	Folder string // "" when unknown
	Name   string // file name of the document, "" when unknown
	Where  string // path in the store: quarantine/…
	Info   vfs.Info
}

// Blocked is a change that was not made because of what stands in its place: a
// folder, a symbolic link, a special file.
type Blocked struct {
	Change int
	Err    error
}

// Result is what a round found. It is valid, as far as the round came, also
// when Round returns an error; an edit may be reported again by the repetition,
// with the same Where.
type Result struct {
	Edits   []Edit
	Blocked []Blocked
	// Missing has the changes whose place was empty against what was believed:
	// somebody removed the file. Puts have restored it.
	Missing []int
}
