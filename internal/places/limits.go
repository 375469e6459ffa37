package places

import "math"

// How many bytes are read at most: of one file, where nothing else is said.
const (
	ConfigMost   = 1 << 20   // config.json
	NoteMost     = 1 << 20   // migrate.json, moved.json, .gitignore
	DocumentMost = 1 << 30   // a document or a scope, in a file or in the log: beyond what any store takes
	StoredMost   = 256 << 20 // a document that a store reads, whatever its limit for new ones is
	BackupMost   = 64 << 20  // backup.json
	ListMost     = 1 << 30   // moved.json.files
	ManifestMost = 1 << 30   // the undo file of an older version, or the note of what was set aside
	CopyMost     = 2 << 30   // what was set aside, or the copy of a segment
	MentionMost  = 64 << 20  // somebody else's file in the store's folder
)

// Limit is how large a file of a store may be of which opening reads all: the notes of a
// migration, which say that the store is elsewhere, or not one yet.
func Limit(rel string) int64 {
	if is(rel, note) {
		return NoteMost
	}
	return math.MaxInt64
}
