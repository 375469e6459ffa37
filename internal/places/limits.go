package places

import "math"

// The maximum number of bytes of one file that are read, unless noted otherwise.
const (
	ConfigMost   = 1 << 20   // config.json
	NoteMost     = 1 << 20   // migrate.json, moved.json, .gitignore
	DocumentMost = 1 << 30   // a document or a scope, in a file or in the log: more than any store accepts
	StoredMost   = 256 << 20 // a document that a store reads, whatever its limit for new ones is
	BackupMost   = 64 << 20  // backup.json
	ListMost     = 1 << 30   // moved.json.files
	ManifestMost = 1 << 30   // an undo file of an older version, or the note about a file in quarantine
	CopyMost     = 2 << 30   // a file in quarantine, or the copy of a segment
	MentionMost  = 64 << 20  // another program's file in the store's folder
)

// Limit returns the maximum size of a file of the store for a program that opens the store. Only the state files of a
// migration have a limit, because each open reads them completely: they record that the store was moved elsewhere or
// is not complete yet. For any other file Limit returns math.MaxInt64.
func Limit(rel string) int64 {
	if isPlace(rel, note) {
		return NoteMost
	}
	return math.MaxInt64
}
