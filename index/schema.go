package index

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
)

// The sections of the index file memory_index.json.
const (
	Memories = iota
	Assemblies
	BySession
	ByExpiry
	Members
	ByMember
	Notes
)

// Names of the index files and folders in a store's folder.
const (
	BaseName   = "memory_index.json"
	DeltaName  = "memory_index.delta.json"
	BackupsDir = "backups"

	OffsetsName      = "wal/offsets" // the offsets of the base: see package table
	OffsetsDeltaName = OffsetsName + ".delta"
)

// offsetsFrom is the smallest size in bytes of an index file that gets an offsets file, which maps hashes of keys to
// positions of lines. In a smaller index file, a search reads only few lines, and these are usually in the processor's
// cache.
var offsetsFrom int64 = 1 << 20

// These types of package table are part of the interface of package index.
type (
	Set     = table.Set     // base and delta files; immutable, reference-counted
	Current = table.Current // the Set that readers use now
	Want    = table.Want    // requirements that Load checks
	Span    = table.Span    // a range of keys in a section
	Item    = table.Item    // one existing key with its value
	Result  = table.Result  // the entry counts of a written file
)

// added are the index sections that AddDocuments has added for other kinds of documents.
var added []table.Section

// AddDocuments adds an index section for another kind of document after all others, and returns its number. It
// must be called before any index is opened: see kind.Register.
func AddDocuments(name string) int {
	added = append(added, table.Section{Name: name, Count: name + "_count", Optional: true, Dead: IsTombstone,
		Valid: validLine})
	return Notes + len(added)
}

// Schema returns the list of sections of memory_index.json.
func Schema() *table.Schema {
	sections := append([]table.Section{
		{Name: record.MemoryFolder, Count: "memory_count", Offsets: true, Dead: IsTombstone, Valid: validLine},
		{Name: record.AssemblyFolder, Count: "assembly_count", Offsets: true, Dead: IsTombstone, Valid: validLine},
		{Name: "by_session", Dead: isDeadPair, Valid: validPair},
		{Name: "by_expiry", Dead: isDeadPair, Valid: validPair},
		{Name: "members", Optional: true, Dead: isDeadPair, Valid: validPair},
		{Name: "by_member", Optional: true, Dead: isDeadPair, Valid: validPair},
		{Name: record.NoteFolder, Count: "note_count", Optional: true, Spare: true, Offsets: true, Dead: IsTombstone,
			Valid: validLine},
	}, added...)
	return &table.Schema{Name: "memory_index", Sections: sections, Offsets: OffsetsName, OffsetsFrom: offsetsFrom}
}

// Load opens the index files of the store in dir, mapped into memory; see table.Load. prev is the previously loaded
// set or nil.
func Load(fsys vfs.FS, dir string, want Want, prev *Set) (*Set, error) {
	return table.Load(fsys, dir, Schema(), want, prev)
}

// Empty returns the index of a store that has not written one yet, as if it covered the log up to lsn.
func Empty(lsn uint64) *Set { return table.Empty(Schema(), lsn) }

const tombstoneHead = `{"deleted":true,"version":`

// IsTombstone reports whether a line of an index delta records a deletion.
func IsTombstone(line []byte) bool { return bytes.HasPrefix(line, []byte(tombstoneHead)) }

var (
	livePair, deadPair = []byte("1"), []byte("0")

	errPair = errors.New("the value in this section must be 1, or, in a delta, 1 or 0")
)

func isDeadPair(value []byte) bool { return len(value) == 1 && value[0] == '0' }

func validPair(value []byte) error {
	if len(value) != 1 || value[0] != '0' && value[0] != '1' {
		return errPair
	}
	return nil
}

func validLine(value []byte) error {
	e, err := ParseLine(value)
	if err != nil {
		return err
	}
	if e.Version == 0 {
		return fmt.Errorf("%w: missing version", errLine)
	}
	return nil
}
