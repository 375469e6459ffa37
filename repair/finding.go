package repair

import (
	"fmt"

	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

// Kind is what was found.
type Kind string

// The kinds of findings.
const (
	ConfigInvalid    Kind = "config invalid"    // config.json cannot be used
	CheckpointSlot   Kind = "checkpoint slot"   // a slot does not verify
	CheckpointMark   Kind = "checkpoint mark"   // it names a place of the log where no frame ends, or another one
	SegmentDamaged   Kind = "segment damaged"   // below durable something is no frame, or does not link
	SegmentMissing   Kind = "segment missing"   // a hole in the row
	SegmentForeign   Kind = "segment foreign"   // a segment of another store, or none at all
	EntryInvalid     Kind = "entry invalid"     // the frame is sound, what it carries is not
	EntryUnknown     Kind = "entry unknown"     // an entry that neither index nor overlay know
	PurgesDamaged    Kind = "purges damaged"    // a line of what was purged does not verify
	ArchiveDamaged   Kind = "archive damaged"   // a block does not verify, or the file breaks off
	HistoryGap       Kind = "history gap"       // a repair found nothing there; what is around it is kept
	IndexDamaged     Kind = "index damaged"     // base or delta cannot be used or contradict themselves
	IndexLine        Kind = "index line"        // a line says something else than its record
	OverlayWrong     Kind = "overlay wrong"     // a position at which its key is not; in memory only
	BackupDamaged    Kind = "backup damaged"    // an older index that could not be fallen back on
	MemoryMissing    Kind = "memory missing"    // an entry without its file
	MemoryEmpty      Kind = "memory empty"      // its file has no bytes
	MemoryRot        Kind = "memory rot"        // other bytes under an unchanged time
	MemoryEdited     Kind = "memory edited"     // saved by hand, and valid
	MemoryInvalid    Kind = "memory invalid"    // changed, and no memory any more
	MemoryWrongID    Kind = "memory wrong id"   // its file holds another id
	MemoryStale      Kind = "memory stale"      // its file holds an older version
	MemoryTime       Kind = "memory time"       // only its file's time was moved
	MemoryUnreadable Kind = "memory unreadable" // the system refuses to read it, or it is no file

	// The same of assemblies.
	AssemblyMissing    Kind = "assembly missing"
	AssemblyEmpty      Kind = "assembly empty"
	AssemblyRot        Kind = "assembly rot"
	AssemblyEdited     Kind = "assembly edited"
	AssemblyInvalid    Kind = "assembly invalid"
	AssemblyWrongID    Kind = "assembly wrong id"
	AssemblyStale      Kind = "assembly stale"
	AssemblyTime       Kind = "assembly time"
	AssemblyUnreadable Kind = "assembly unreadable"
	AssemblyMembers    Kind = "assembly members missing" // it names memories that are not there
	CompositeWrong     Kind = "composite wrong"          // it is not that of its members
	IndexMembers       Kind = "index members"            // the index names other members than the document

	VectorsDamaged    Kind = "vectors damaged"       // mapping or vectors cannot be used or contradict themselves
	VectorsBehind     Kind = "vectors behind"        // they are older than the index says, or gone
	VectorsPending    Kind = "vectors pending"       // not computed yet, since no search needed them
	VectorMissing     Kind = "vector missing"        // an embedding without vector
	VectorGhost       Kind = "vector without memory" // or without assembly, or without embedding
	VectorStale       Kind = "vector stale"          // it is not that of the embedding
	EmbeddingsPending Kind = "embeddings pending"    // contents without an embedding, where others have one by a model
	VectorMisfit      Kind = "vector misfit"         // an embedding of another dimension: it has no vector

	ViewWrong Kind = "view wrong" // the files of a view cannot be used, or are not what the index says

	// a scope's file cannot be read, or is not the state from which the log continues
	WorkingDamaged Kind = "working memory damaged"
	WorkingEdited  Kind = "working memory edited" // saved by hand, and valid

	PurgedFile      Kind = "purged text"        // a file whose text was purged: it stays, and is not taken over
	Stranger        Kind = "file without entry" // a memory or assembly that the store does not know
	Misplaced       Kind = "file misplaced"     // one in a place that is not its id's
	Unparsable      Kind = "file unparsable"    // no entry, and not a document either
	Foreign         Kind = "foreign file"       // something that is none of the store's
	Leftover        Kind = "leftover"           // a temp file whose process is gone
	Quarantined     Kind = "quarantined"        // files were set aside, to be inspected by the user
	WrongKind       Kind = "wrong kind"         // in the place of a file of the store is a link, a FIFO, a folder
	NotFolder       Kind = "not a folder"       // a link, or something else, in the place of a folder of the store
	LogMissing      Kind = "log missing"        // no segment is left: a clone, a rescued copy, a lost wal/
	StoreUnreadable Kind = "store unreadable"   // it cannot be opened, for a reason that is not one of these
)

// ofAssembly is what a finding of a memory's file is called of an assembly's.
var ofAssembly = map[Kind]Kind{
	MemoryMissing: AssemblyMissing, MemoryEmpty: AssemblyEmpty, MemoryRot: AssemblyRot, MemoryEdited: AssemblyEdited,
	MemoryInvalid: AssemblyInvalid, MemoryWrongID: AssemblyWrongID, MemoryStale: AssemblyStale, MemoryTime: AssemblyTime,
	MemoryUnreadable: AssemblyUnreadable,
}

// OfAssembly returns the kind of a finding about a memory's file for an assembly's file.
func (k Kind) OfAssembly() Kind {
	if name, ok := ofAssembly[k]; ok {
		return name
	}
	return k
}

// General returns the kind of a finding about an assembly's file for a memory's file.
func (k Kind) General() Kind {
	for memory, name := range ofAssembly {
		if name == k {
			return memory
		}
	}
	return k
}

// Severity says what a finding means for the data.
type Severity int

// The severities, the gravest last.
const (
	Info     Severity = iota // nothing is wrong with the store
	Healable                 // there is a second copy, or the damaged data can be rebuilt
	Lost                     // no copy is left that verify knows of
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

// What would heal a finding.
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

	ByDocuments   = "documents" // their embeddings
	ByEmbedding   = "embedding them"
	ByRecomputing = "recomputing it"
	ByTakingOut   = "taking them out"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Kind     Kind
	Severity Severity
	Path     string // in the store, with slashes
	Offset   int64  // byte in the file, -1 when it is the file as a whole
	ID       string // of the memory or assembly, "" when it is none
	LSN      uint64 // position in the log, 0 when there is none
	Stake    string // what is at stake
	Heals    string // what would heal it, "" when nothing known here would
	Next     string // the next command
	Err      error  // the problem

	Remarks Remarks // what else decides about what heals it
}

// Remarks say more of a finding, where that decides about what heals it.
type Remarks uint8

// The remarks.
const (
	Released Remarks = 1 << iota // a segment that the log no longer needs
	Unopened                     // the store could not be opened
	Absent                       // neither base nor delta is there
	OtherLog                     // the checkpoint is that of another log
)

// Unread is the error when this process lacked files or memory to look: that says
// nothing of the store, and must neither be called damage nor be repaired.
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

// The next commands.
const (
	NextRepair     = "memctl repair"
	NextQuarantine = "memctl quarantine list"
	NextRebuild    = "memctl rebuild-index"
	NextFlush      = "memctl flush"
	NextReindex    = "memctl reindex"
	NextMembers    = "memctl repair --missing-members"
)
