package repair

import (
	"cmp"
	"slices"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/vector"
)

// actionFor returns the action that repairs a finding. It returns false if no action can repair the finding, or if no
// action is necessary.
func actionFor(f Finding) (a Action, ok bool) {
	if a, ok = plannedFor(f); a.Do == SetAside || a.Do == Adopt {
		a.From = "" // these actions use no copy
	}
	return a, ok
}

func plannedFor(f Finding) (a Action, ok bool) {
	a = Action{Path: f.Path, ID: f.ID, From: f.Heals}
	switch f.Kind.General() {
	case WrongKind:
		a.Do, a.From = MoveOut, ""
	case NotFolder:
		if a.Do = MakeRoom; f.Severity == Info {
			return a, false
		}
		a.From = ""
	case ConfigInvalid:
		a.Do, a.Alone, a.Loses = FixConfig, true, "the settings that are not valid"
	case CheckpointSlot, CheckpointMark:
		a.Do, a.Alone, a.Path, a.From = NewMarks, true, "checkpoint", ByLog
	case SegmentDamaged, SegmentMissing, EntryInvalid:
		a.Alone, a.ID = true, ""
		switch a.Do = SetSegment; {
		case f.Remarks&Unopened != 0: // the log to which the file belongs is unknown: opening begins a new log
			a.Do, a.From = SetAside, ""
		case f.Remarks&Released == 0:
			a.Do, a.Path = NewLog, "wal"
		}
		if f.Severity == Lost {
			a.Loses = f.Stake
			if f.Kind != SegmentMissing {
				a.Loses += ", as far as the damaged bytes contained them"
			}
		}
	case SegmentForeign:
		a.Do, a.Alone = SetAside, true
	case LogMissing:
		a.Do, a.Alone = Reopen, true
		if f.Severity == Lost {
			a.Loses = f.Stake
		}
	case VectorsDamaged, VectorsBehind, VectorMissing, VectorGhost, VectorStale:
		a.Do, a.Path, a.ID, a.From = RebuildVectors, vector.BaseMapping, "", ByDocuments
	case ViewWrong:
		a.Do = RebuildView
	case WorkingDamaged:
		if a.Do = RebuildScope; f.Path == places.Working {
			return a, false // the folder as a whole
		}
		a.Loses = "the data that neither log nor archive have"
	case CompositeWrong:
		a.Do, a.From = Recompute, ""
	case AssemblyMembers:
		a.Do, a.From = TakeOut, ""
	case EntryUnknown, IndexLine, IndexMembers:
		a.Do, a.Path, a.ID, a.From = Rebuild, index.BaseName, "", ByLog+" and "+ByFiles
	case OverlayWrong:
		return a, false // in memory only: opening the store again, which was done, is enough
	case IndexDamaged:
		a.Do, a.Path, a.From = Rebuild, index.BaseName, ByLog+" and "+ByFiles
		if f.Remarks&Unopened != 0 {
			a.Do, a.Path, a.Alone = SetIndexAside, f.Path, true
		}
		if f.Remarks&Absent != 0 {
			a.Do = Reopen
		}
	case ArchiveDamaged:
		a.Do = SetAside
		if f.Severity == Lost {
			a.Loses = f.Stake + ", as far as the damaged bytes contained it"
		}
	case PurgesDamaged:
		a.Do, a.Loses = SetAside, f.Stake+", where log and archive do not have it"
	case WritersDamaged:
		if f.Severity == Info {
			return a, false // the next flush writes them again
		}
		a.Do, a.Loses = SetAside, f.Stake+", where log and archive do not have them"
	case BackupDamaged:
		a.Do = SetAside
	case MemoryMissing, MemoryEmpty, MemoryRot, MemoryInvalid, MemoryWrongID, MemoryStale, MemoryUnreadable:
		if kind.At(f.Path) == nil {
			return a, false // the folder as a whole
		}
		return forDocument(a, f)
	case MemoryEdited:
		a.Do = Adopt
	case Stranger, Misplaced, Unparsable:
		switch f.Heals {
		case ByAdoption:
			a.Do = Adopt
		case BySalvage:
			a.Do, a.Loses = Salvage, "the parts of the document that cannot be read"
		case ByLog, ByArchive, ByFiles:
			a.Do = Restore
		default:
			a.Do = SetAside
		}
	case Foreign:
		if f.Severity == Info {
			return a, false
		}
		a.Do = SetAside
		a.Alone = strings.HasPrefix(f.Path, "wal/") && !strings.HasPrefix(f.Path, "wal/archive/")
	case Leftover:
		if !strings.HasPrefix(f.Path, "tmp/") {
			return a, false // the next open removes it
		}
		a.Do, a.Path = Tidy, ""
	default:
		return a, false
	}
	return a, true
}

// forDocument returns the action that repairs a document whose file matches none of the document's known versions. It
// returns false if no action can repair the document.
func forDocument(a Action, f Finding) (Action, bool) {
	switch {
	case f.Severity != Lost:
		a.Do = Restore
	case f.Heals == ByHand:
		return a, false // it was stored in this form
	case f.Heals == ByRecording, slices.Contains([]Kind{MemoryMissing, MemoryEmpty, MemoryUnreadable}, f.Kind.General()):
		a.Do, a.From, a.Loses = RecordLost, "", f.Stake+": no copy is left"
	default:
		a.Do, a.From, a.Loses = Salvage, BySalvage, "the parts of the document that cannot be read"
	}
	return a, true
}

// sorted returns the repair actions in the order in which they must be carried out.
func (g *grouped) sorted() []Action {
	slices.SortStableFunc(g.list, func(a, b Action) int { return cmp.Compare(order[a.Do], order[b.Do]) })
	return g.list
}
