package repair

import (
	"fmt"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

// Kind is the kind of a finding: what is wrong with the store.
type Kind string

// The kinds of findings.
const (
	ConfigInvalid  Kind = "config invalid"  // config.json cannot be used
	CheckpointSlot Kind = "checkpoint slot" // a slot of the checkpoint is invalid
	// CheckpointMark: the checkpoint has a position at which no frame of the log ends, or at which the chain hash
	// differs
	CheckpointMark Kind = "checkpoint mark"
	// SegmentDamaged: the log has bytes below its durable end that are not a frame, or do not continue the chain of
	// frames
	SegmentDamaged Kind = "segment damaged"
	// SegmentMissing: the log lacks a segment between two others, or a segment that recovery needs
	SegmentMissing Kind = "segment missing"
	SegmentForeign Kind = "segment foreign" // a file in wal/ is a segment of another store, or not a segment
	EntryInvalid   Kind = "entry invalid"   // the frame of a log entry is valid, its content is not
	EntryUnknown   Kind = "entry unknown"   // a log entry whose change is neither in the index nor in the overlay
	PurgesDamaged  Kind = "purges damaged"  // a line in the list of purged versions has a wrong checksum
	WritersDamaged Kind = "writers damaged" // a line that describes a writer has a wrong checksum
	ArchiveDamaged Kind = "archive damaged" // an archived segment with a damaged block, or cut short
	HistoryGap     Kind = "history gap"     // an earlier repair left a gap there; the entries around it are kept
	IndexDamaged   Kind = "index damaged"   // base or delta cannot be used, or the index contradicts itself
	IndexLine      Kind = "index line"      // an index line that contradicts its document
	// OverlayWrong: the overlay, which is in memory, has a position for a key, but the log has no entry of this key
	// there
	OverlayWrong  Kind = "overlay wrong"
	BackupDamaged Kind = "backup damaged" // an older index that cannot be used in place of a damaged one
	MemoryMissing Kind = "memory missing" // the file of a memory in the index does not exist
	MemoryEmpty   Kind = "memory empty"   // the file of the memory is empty
	// MemoryRot: the content of the memory's file changed, but the modification time of the file did not
	MemoryRot     Kind = "memory rot"
	MemoryEdited  Kind = "memory edited"   // the memory's file was saved by hand, and is valid
	MemoryInvalid Kind = "memory invalid"  // the memory's file was changed, and is no longer a valid memory
	MemoryWrongID Kind = "memory wrong id" // the memory's file has another id
	MemoryStale   Kind = "memory stale"    // the memory's file has an older version
	MemoryTime    Kind = "memory time"     // only the time of the memory's file changed
	// MemoryUnreadable: the system refuses to read the memory's file, or there is something other than a regular file
	// in its place
	MemoryUnreadable Kind = "memory unreadable"

	// AssemblyMissing: the assembly's file is missing. This kind and the following ones up to AssemblyUnreadable mean
	// the same for an assembly as the kinds of similar names for a memory.
	AssemblyMissing    Kind = "assembly missing"
	AssemblyEmpty      Kind = "assembly empty"
	AssemblyRot        Kind = "assembly rot"
	AssemblyEdited     Kind = "assembly edited"
	AssemblyInvalid    Kind = "assembly invalid"
	AssemblyWrongID    Kind = "assembly wrong id"
	AssemblyStale      Kind = "assembly stale"
	AssemblyTime       Kind = "assembly time"
	AssemblyUnreadable Kind = "assembly unreadable"
	AssemblyMembers    Kind = "assembly members missing" // an assembly with members that do not exist
	// CompositeWrong: the stored composite embedding of an assembly differs from the one computed from its members
	CompositeWrong Kind = "composite wrong"
	// IndexMembers: the index lists other members of an assembly than the assembly's document does
	IndexMembers Kind = "index members"

	VectorsDamaged Kind = "vectors damaged" // mapping or vectors cannot be used, or are inconsistent
	VectorsBehind  Kind = "vectors behind"  // the vectors are missing, or older than the index records
	VectorsPending Kind = "vectors pending" // vectors that are not computed yet, because no search needed them
	VectorMissing  Kind = "vector missing"  // an embedding without a vector
	// VectorGhost: a vector belongs to no memory or assembly, or to one without an embedding
	VectorGhost Kind = "vector without memory"
	VectorStale Kind = "vector stale" // a vector that differs from the embedding
	// EmbeddingsPending: memories with content have no embedding, although the store has vectors made by a model
	EmbeddingsPending Kind = "embeddings pending"
	VectorMisfit      Kind = "vector misfit" // an embedding of another dimension, for which no vector is stored

	ViewWrong Kind = "view wrong" // the files of a view cannot be used, or they contradict the index

	// WorkingDamaged: the file of a scope of working memory cannot be read, or it records a state from which the log
	// does not continue
	WorkingDamaged Kind = "working memory damaged"
	WorkingEdited  Kind = "working memory edited" // the file of a scope was saved by hand, and is valid

	PurgedFile  Kind = "purged text"        // the text in a file was purged: the file stays, and is not adopted
	Stranger    Kind = "file without entry" // a file of a memory or assembly that the store does not know
	Misplaced   Kind = "file misplaced"     // a document whose file does not have the name that belongs to its id
	Unparsable  Kind = "file unparsable"    // a file without an entry in the store that is not a valid document
	Foreign     Kind = "foreign file"       // a file that does not belong to the store
	Leftover    Kind = "leftover"           // a temporary file whose process has ended
	Quarantined Kind = "quarantined"        // files in quarantine, to be inspected by the user
	WrongKind   Kind = "wrong kind"         // a link, a FIFO or a folder is in the place of a file of the store
	// NotFolder: a folder of the store is replaced by a link or another object that is not a folder
	NotFolder Kind = "not a folder"
	// LogMissing: the log has no segment, because the folder is a clone or a rescued copy, or because wal/ was lost
	LogMissing      Kind = "log missing"
	StoreUnreadable Kind = "store unreadable" // the store cannot be opened, for a reason that no other kind describes
)

// ofAssembly maps each kind of finding about a memory's file to the same kind for an assembly's file.
var ofAssembly = map[Kind]Kind{
	MemoryMissing: AssemblyMissing, MemoryEmpty: AssemblyEmpty, MemoryRot: AssemblyRot, MemoryEdited: AssemblyEdited,
	MemoryInvalid: AssemblyInvalid, MemoryWrongID: AssemblyWrongID, MemoryStale: AssemblyStale, MemoryTime: AssemblyTime,
	MemoryUnreadable: AssemblyUnreadable,
}

// OfAssembly returns the kind of finding for an assembly's file that corresponds to k, if k is a kind for a memory's
// file; it returns any other k unchanged.
func (k Kind) OfAssembly() Kind {
	if name, ok := ofAssembly[k]; ok {
		return name
	}
	return k
}

// General returns the kind of finding for a memory's file that corresponds to k, if k is a kind for an assembly's
// file; it returns any other k unchanged.
func (k Kind) General() Kind {
	for memory, name := range ofAssembly {
		if name == k {
			return memory
		}
	}
	return k
}

// Severity is how serious a finding is for the data.
type Severity int

// The severities, in rising order.
const (
	Info     Severity = iota // no fault of the store
	Healable                 // a second copy exists, or the damaged data can be rebuilt
	Lost                     // no other valid copy of the data is known
)

func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Healable:
		return "healable"
	}
	return "lost"
}

// The sources or methods by which a finding is repaired (Finding.Heals).
const (
	ByLog        = "log"
	ByArchive    = "archive"
	ByFiles      = "files"
	ByIndex      = "index rebuild"
	ByCheckpoint = "next checkpoint"
	ByAdoption   = "adoption"
	ByMoving     = "setting it aside"
	ByHand       = "editing it"
	BySalvage    = "salvage"
	ByRecording  = "recording it as lost"
	ByDefaults   = "defaults"

	ByDocuments   = "documents" // rebuilding from the embeddings in the documents
	ByEmbedding   = "embedding them"
	ByRecomputing = "recomputing it"
	ByTakingOut   = "taking them out"
)

// Finding is a fault that a verification has found in a store, or a remark about the store.
type Finding struct {
	Kind     Kind
	Severity Severity
	Path     string // path of the file in the store, with slashes
	Offset   int64  // byte offset in the file, -1 if the finding is about the whole file
	ID       string // id of the memory or assembly, "" if the finding is not about one
	LSN      uint64 // position in the log, 0 if the finding has none
	Stake    string // the data or function that the fault endangers
	Heals    string // source or method of a repair, "" if no repair is known
	Next     string // command for the user to run next
	Err      error  // what is wrong

	Remarks Remarks // more facts that the repair depends on
}

// Remarks are facts about a finding that determine how it can be repaired.
type Remarks uint8

// The facts about a finding that Remarks may combine.
const (
	Released Remarks = 1 << iota // the damaged segment is one that the log no longer needs
	Unopened                     // the store could not be opened
	Absent                       // neither base nor delta of the index exists
	OtherLog                     // the checkpoint belongs to another log
)

// Unread returns an error if the check behind the finding failed only because this process lacked file descriptors or
// memory. Such a finding is not damage, and must not be repaired. Otherwise Unread returns nil.
func (f *Finding) Unread() error {
	if !vfs.IsStarved(f.Err) {
		return nil
	}
	return fmt.Errorf("%s could not be checked: %w", f.Path, f.Err)
}

func (f Finding) String() string {
	s := f.Path
	if f.Offset >= 0 {
		s += fmt.Sprintf(" at byte %d", f.Offset)
	}
	s += fmt.Sprintf(": %s (%s)", f.Kind, f.Severity)
	if f.ID != "" {
		s += " of " + human.Quote(f.ID)
	}
	if f.Err != nil {
		s += ": " + f.Err.Error()
	}
	return s
}

// The commands that a finding recommends (Finding.Next).
const (
	NextRepair     = "memctl repair"
	NextQuarantine = "memctl quarantine list"
	NextRebuild    = "memctl rebuild-index"
	NextFlush      = "memctl flush"
	NextReindex    = "memctl reindex"
	NextMembers    = "memctl repair --missing-members"
)
