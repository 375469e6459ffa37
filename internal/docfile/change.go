package docfile

import (
	"encoding/json"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// Change is the change that one round of writing files makes to one document. A round has at most one change
// for each path.
type Change struct {
	Folder *Folder
	Name   string // file name of the document in the folder

	// Delete removes the document. Otherwise the new content is Bytes, or the result of Data, which is called when the
	// change is made, so that the contents of a round need not all be in memory. The content may be empty only where
	// FolderOptions.Empty is set.
	Delete bool
	Bytes  []byte
	Data   func() ([]byte, error)
	Mtime  time.Time

	Before Before

	// Ours reports whether data is a version of this document that the store has written. It is called for a
	// file at the document's path that differs from Before. nil: no version is known. With several workers
	// Ours and Data are called from several goroutines.
	Ours func(info vfs.Info, data func() ([]byte, error)) bool

	// Keep leaves a file that the store did not write at its path and skips the change: the last write to the
	// disk wins, and the caller adopts that file. A file that already has the bytes of the change also stays,
	// with its own mtime. Without Keep, as after a crash, when a file may contain anything, such a file is set
	// aside.
	Keep bool
	// Found means that the caller has found the new content at the document's path, with Mtime. If the file is
	// gone by now, another program removed it, and it is not restored, except after a crash.
	Found bool

	// ID and the fields below are written to the note if an edit is moved to quarantine.
	ID      string
	Version uint64
	Known   json.RawMessage // index line of the file that the caller expects at the document's path
}

// Before describes the file that the caller expects at a document's path. The zero value means that it expects
// no file.
type Before struct {
	Exists bool
	Size   int64
	Mtime  time.Time
	// Hash is the expected hash of the content as the index spells it ("sha256:…"). With it, a file of the right size
	// and mtime is also read and hashed; if it is "", size and mtime are enough.
	Hash string
}

func (b Before) matches(info vfs.Info) bool {
	return b.Exists && b.Size == info.Size && b.Mtime.Equal(info.Mtime)
}

// Edit is a file at a document's path that this store did not write: another program created the file or saved into it.
// The file is now in quarantine/, durably, with a note.
type Edit struct {
	// Change is the index of the change during which the file was found, or -1 if it was found in tmp/. In tmp/,
	// either another program saved into the file after the store had replaced it, or a process that died left the
	// file.
	Change int
	Folder string // name of the folder of documents, "" when unknown
	Name   string // file name of the document, "" when unknown
	Where  string // path of the file relative to the store: quarantine/…
	Info   vfs.Info
}

// Blocked is a change that was not made because of an obstacle: something other than a regular file (a folder, a
// symbolic link, a special file) is at the document's path, or something other than a folder is at the path of a folder
// that contains the document.
type Blocked struct {
	Change int
	Err    error
}

// Result describes what a round of writing files has found. If Round returns an error, Result is valid for the part of
// the round that was done. A repeated round may report the same edit again, with the same Where.
type Result struct {
	Edits   []Edit
	Blocked []Blocked
	// Missing has the indexes of the changes whose expected file did not exist, because another program removed it. A
	// change that is not a deletion has restored the file, unless Found forbids that.
	Missing []int
}
