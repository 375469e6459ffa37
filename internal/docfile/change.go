package docfile

import (
	"encoding/json"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// Change is the change of one document by a round. A round has at most one change for each file.
type Change struct {
	Folder *Folder
	Name   string // file name in the folder

	// Delete removes the document. Otherwise Bytes is the new content, which may be empty only if FolderOptions.Empty
	// is set; or Data returns the content when the change is made, so that the contents of a round need not all be in
	// memory.
	Delete bool
	Bytes  []byte
	Data   func() ([]byte, error)
	Mtime  time.Time

	Before Before

	// Ours reports whether data is a version of this document that the caller knows. It is called for a file that
	// differs from Before. nil: no version is known. With several workers, several goroutines call Ours and Data.
	Ours func(info vfs.Info, data func() ([]byte, error)) bool

	// Keep leaves a file that is not a known version in its place and skips the change: the last write to the disk
	// wins, and the caller adopts that file. A file that already has the bytes of the change also stays, with its own
	// mtime. Without Keep, as after a crash, when a file may have any content, such a file is set aside.
	Keep bool
	// Found means that the bytes were found in the document's file, with Mtime. If the file is gone by now, another
	// program removed it, and it is not restored, except after a crash.
	Found bool

	// ID and the fields below are for the note if an edit is set aside.
	ID      string
	Version uint64
	Known   json.RawMessage // index line of the file that is expected
}

// Before describes the file that is expected in a document's place. The zero value: no file.
type Before struct {
	Exists bool
	Size   int64
	Mtime  time.Time
	// Hash is the content hash as the index spells it ("sha256:…"). If given, a file of the right size and
	// mtime is also read and hashed; if "", size and mtime are enough.
	Hash string
}

func (b Before) matches(info vfs.Info) bool {
	return b.Exists && b.Size == info.Size && b.Mtime.Equal(info.Mtime)
}

// Edit is a file that the store did not write: another program created it or saved into it. It is in quarantine/,
// synced, with a note.
type Edit struct {
	// Change is the index of the change that found the file. -1: the file was in tmp/, because a program saved into it
	// after it had been displaced, or because a process that died left it there.
	Change int
	Folder string // folder of the document, "" if unknown
	Name   string // file name of the document, "" when unknown
	Where  string // path in the store: quarantine/…
	Info   vfs.Info
}

// Blocked is a change that was not made because of the object in its place: a folder, a symbolic link, a special file.
type Blocked struct {
	Change int
	Err    error
}

// Result is the result of a round. If Round returns an error, Result is valid for the part that was done, and the
// repetition of the round may report an edit again, with the same Where.
type Result struct {
	Edits   []Edit
	Blocked []Blocked
	// Missing are the changes of documents whose file was expected and did not exist: another program removed it.
	// Changes that write a document have restored it.
	Missing []int
}
