package state

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// State has the position of the newest version of every document and of every scope of working memory, after all
// applied log entries. For entries that the index covers, the index files have these positions; for later entries, the
// overlay has them.
type State struct {
	mu      sync.Mutex // held by Apply, Begin and Swap; look-ups of documents take no lock
	sets    index.Current
	overlay atomic.Pointer[index.Overlay]
	from    atomic.Uint64 // position up to which the current set covers the log
	inexact bool          // the set was made from files: it may contain documents that were created after its lsn
	swaps   atomic.Uint64 // number of times that the set was replaced
	live    [256]int64    // number of existing documents and scopes, by kind
	had     [256]bool     // by kind: the index set or the log has, or had, a document of the kind
	applied uint64        // highest position of an applied entry
	mortal  uint64        // highest position of an applied memory with a time to live
	lines   sync.Pool     // unused *[]byte buffers, for a line that is parsed immediately
	members membership
	breaks  atomic.Uint64 // number that Breaks returns

	// Refused is called with each invalid log entry, which is then skipped. It is set before Begin, and must
	// be quick.
	Refused func(e *wal.Entry, err error)

	// Worked is called with each log entry of working memory, before the overlay has it. It is set before
	// Begin, and must be quick.
	Worked    func(scope string, at uint64)
	puts      puts
	interests interests
	models    models
	writers   writers
	purges    purges

	// Explained returns the writer that was explained last before a position, among the writers that the state
	// has dropped; the zero Writer if the state has dropped no such writer. It is set before Begin, and must be quick.
	Explained func(below uint64) (writer.Writer, error)
}

// Place describes where the newest version of a key is stored.
type Place struct {
	Version uint64
	InLog   bool        // the version is in the overlay, and its frame in the log is at Version
	Entry   index.Entry // the line of the index if the version is not in the log
}

// Begin starts again with the index set. It takes over the caller's reference to the set. inexact means that the index
// was made from the document files and not from the log.
func (s *State) Begin(set *index.Set, inexact bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = [256]int64{}
	s.count(set)
	s.from.Store(set.LSN())
	s.inexact = inexact
	s.applied = 0
	// First the set, then an empty overlay: a reader between the two finds old positions, which the log has released or
	// which are still right.
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	err := s.sets.Swap(set)
	s.breaks.Add(1)
	s.swaps.Add(1) // before the overlay is empty: see Work
	s.overlay.Store(index.NewOverlay())
	s.members.begin(set)
	s.models.begin(set)
	s.swaps.Add(1)
	s.writers.begin()
	s.purges.begin()
	s.puts.begin()
	s.interests.begin(s.swaps.Load())
	return err
}

func (s *State) count(set *index.Set) {
	for _, k := range kind.Kinds {
		s.live[k.Letter] = set.Count(k.Section)
	}
}

// recount adjusts the numbers of documents when a rebuilt index replaces the current one. The two indexes cover the
// same entries of the log, but each of them may lack documents that the other one has.
func (s *State) recount(set *index.Set) {
	old := s.sets.Acquire()
	if old == nil {
		s.count(set)
		return
	}
	for _, k := range kind.Kinds {
		s.live[k.Letter] += set.Count(k.Section) - old.Count(k.Section)
	}
	_ = old.Release() // not the last reference: old is still the current set
}

// Apply applies durable log entries. Entries that the index covers are skipped.
func (s *State) Apply(entries []wal.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	overlay := s.overlay.Load()
	for i := range entries {
		e := &entries[i]
		s.interests.note(e)
		s.puts.note(e) // also if the set covers it: it was put since the count began
		if e.LSN < s.from.Load() || e.LSN <= s.applied {
			continue
		}
		v, err := s.admit(e)
		if errors.Is(err, ErrEntry) {
			s.refuse(e, err)
			continue
		}
		if err != nil {
			return err
		}
		letter := e.Key[0]
		if letter == record.Working {
			s.work(e)
			continue
		}
		if letter == record.Model {
			if err := s.models.apply(e.LSN, v.Line); err != nil {
				return fmt.Errorf("entry %d: %w", e.LSN, err)
			}
			s.applied = e.LSN
			continue
		}
		if letter == record.Writer {
			if err := s.writers.apply(e, v.Line); err != nil {
				return err
			}
			s.applied = e.LSN
			continue
		}
		if letter == record.Purge {
			if err := s.purges.apply(e, v.Line); err != nil {
				return err
			}
			s.applied = e.LSN
			continue
		}
		if letter == record.Kept {
			s.applied = e.LSN // a kept version changes no document
			continue
		}
		created := v.Created
		if s.inexact {
			if created, err = s.creates(letter, e.Key[1:]); err != nil {
				return err
			}
		}
		s.had[letter] = true
		overlay.Put(letter, e.Key[1:], e.LSN, e.Delete)
		if letter == kind.Assemblies.Letter {
			if err := s.grouping(e, v.Line); err != nil {
				return err
			}
		}
		if letter == kind.Memories.Letter && index.MayExpire(v.Line) {
			s.mortal = e.LSN
		}
		switch {
		case e.Delete && !(s.inexact && created):
			s.live[letter]--
		case created && !e.Delete:
			s.live[letter]++
		}
		s.applied = e.LSN
	}
	return nil
}

// admit decodes a log entry before it is applied. It also checks the entry, unless this process wrote it: such an
// entry was checked when it was made.
func (s *State) admit(e *wal.Entry) (record.View, error) {
	if e.Own {
		return Read(e)
	}
	return Check(e)
}

// refuse skips e, an invalid log entry, and passes it to Refused with the error err. The caller holds mu.
func (s *State) refuse(e *wal.Entry, err error) {
	s.applied = e.LSN
	if s.Refused != nil {
		s.Refused(e, err)
	}
}

func (s *State) creates(letter byte, id string) (bool, error) {
	_, err := s.Find(letter, id)
	if errors.Is(err, errs.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// Current implements wal.Machine: it returns the present version of a key, with which the log compares the version in
// a precondition.
func (s *State) Current(key string) (wal.LSN, error) {
	switch key[0] {
	case Members:
		return s.currentMembers(key[1:])
	case record.Working:
		return s.Work(key[1:]), nil
	case Interests:
		return s.interests.current(key), nil
	case Puts:
		return s.puts.counts[slotOfKey(key)].Load(), nil
	case PutBytes:
		return s.puts.bytes[slotOfKey(key)].Load(), nil
	case record.Model:
		return s.Model().LSN, nil
	case record.Writer:
		w, err := s.NewestWriter()
		return w.Since, err
	case record.Purge:
		return 0, nil // no precondition depends on it
	}
	p, err := s.Find(key[0], key[1:])
	if errors.Is(err, errs.ErrNotFound) {
		return 0, nil
	}
	return p.Version, err
}

// Find returns the place where the newest version of a document is stored; the error is errs.ErrNotFound if
// the store does not have the document.
func (s *State) Find(letter byte, id string) (Place, error) {
	if pos, deleted, ok := s.overlay.Load().Get(letter, id); ok {
		if deleted {
			return Place{}, errs.ErrNotFound
		}
		return Place{Version: pos, InLog: true}, nil
	}
	if letter == record.Working {
		return Place{}, errs.ErrNotFound // the scope's file may have it: see Work
	}
	e, err := s.Line(letter, id)
	if err != nil {
		return Place{}, err
	}
	return Place{Version: e.Version, Entry: e}, nil
}

// Deletion returns the position of the newest entry of a key if it is a deletion that the overlay still has;
// otherwise 0.
func (s *State) Deletion(letter byte, id string) uint64 {
	if pos, deleted, ok := s.overlay.Load().Get(letter, id); ok && deleted {
		return pos
	}
	return 0
}

// Line returns the line that the index files have for a document, even if the overlay has a newer version. The error
// is errs.ErrNotFound if the index has no such line.
func (s *State) Line(letter byte, id string) (index.Entry, error) {
	k := kind.Lettered(letter)
	if k == nil {
		return index.Entry{}, errs.ErrNotFound
	}
	set := s.sets.Acquire()
	if set == nil {
		return index.Entry{}, errs.ErrClosed
	}
	defer set.Release()
	buf, _ := s.lines.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer s.lines.Put(buf)
	line, ok, err := set.Get((*buf)[:0], k.Section, id)
	*buf = line[:0]
	if err != nil {
		return index.Entry{}, err
	}
	if !ok {
		return index.Entry{}, errs.ErrNotFound
	}
	e, err := index.ParseLine(line)
	if err != nil {
		return e, fmt.Errorf("%w: the index line of %s is invalid: %w", errs.ErrCorrupt, human.Quote(id), err)
	}
	return e, nil
}

// Changed reports whether the newest version of a document may differ from version; 0 stands for a document that does
// not exist. since is the result of Swaps from before the caller found version.
func (s *State) Changed(letter byte, id string, version, since uint64) bool {
	if pos, deleted, ok := s.overlay.Load().Get(letter, id); ok {
		if deleted {
			pos = 0
		}
		return pos != version
	}
	return s.swaps.Load() != since
}

// Hint returns the Hint of a wal.Precondition on the key of a document. Call it before the call of Find on whose
// result the precondition depends.
func (s *State) Hint() uint64 { return s.swaps.Load() + 1 }

// Unchanged implements wal.Machine: it reports whether it is certain that the version in the precondition p is still
// the newest.
func (s *State) Unchanged(p wal.Precondition) bool {
	switch p.Key[0] {
	case Members:
		return s.MembersHint() == p.Hint
	case Puts, PutBytes, Interests:
		return false // Current needs no look-up for these
	case record.Model, record.Writer, record.Purge:
		return false // Current is cheap for these
	}
	return !s.Changed(p.Key[0], p.Key[1:], p.LSN, p.Hint-1)
}

// Swaps returns a number that increases whenever the index is replaced.
func (s *State) Swaps() uint64 { return s.swaps.Load() }

// Live returns the number of existing documents, or scopes of working memory, of a kind.
func (s *State) Live(letter byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[letter]
}

// Had reports whether a document or scope of a kind exists or has existed, as far as the index and the log show.
func (s *State) Had(letter byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.had[letter] || s.live[letter] > 0
}

// Set returns the current index; nil after Close. The caller gets a reference and must release it.
func (s *State) Set() *index.Set { return s.sets.Acquire() }

// Overlay returns the current overlay.
func (s *State) Overlay() *index.Overlay { return s.overlay.Load() }

// From returns the position up to which the current index covers the log.
func (s *State) From() uint64 {
	return s.from.Load()
}

// Swap installs a newer index and drops the positions that it covers from the overlay. Swap takes over the caller's
// reference to set. If set is older than the current index, Swap only releases set.
func (s *State) Swap(set *index.Set) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set.LSN() < s.from.Load() {
		return set.Release()
	}
	switch {
	case s.applied < set.LSN():
		s.count(set) // the set covers more than this process has applied
		s.breaks.Add(1)
	case set.LSN() == s.from.Load():
		s.recount(set)
	}
	if set.LSN() > s.from.Load() {
		s.inexact = false
	}
	s.from.Store(set.LSN())
	s.members.mu.Lock()
	err := s.sets.Swap(set)
	s.swaps.Add(1)
	s.members.swap(set)
	s.models.swap(set)
	s.writers.drop(set.LSN())
	s.purges.drop(set.LSN())
	s.members.mu.Unlock()
	s.overlay.Load().DropBelow(set.LSN())
	return err
}

// Changes returns the newest versions whose positions are in [from, to), in the order of the log. The result
// shows the state at one moment.
func (s *State) Changes(from, to uint64) []index.At { return s.FirstChanges(from, to, math.MaxInt) }

// Moment returns three values as of the same moment: the number of existing memories, the Changes from a position on,
// and the position up to which the index covers the log. If mortal is true and none of the changes has a time to live,
// Moment returns no changes.
func (s *State) Moment(from uint64, mortal bool) (live int64, list []index.At, covered uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mortal && s.mortal < from {
		return s.live[kind.Memories.Letter], nil, s.from.Load()
	}
	for at := range s.overlay.Load().Changes(from, 1<<62) {
		list = append(list, at)
	}
	return s.live[kind.Memories.Letter], list, s.from.Load()
}

// FirstChanges returns the first Changes in [from, to), but no more than limit of them.
func (s *State) FirstChanges(from, to uint64, limit int) []index.At {
	s.mu.Lock()
	defer s.mu.Unlock()
	overlay := s.overlay.Load()
	list := make([]index.At, 0, min(overlay.Len(), limit))
	for at := range overlay.Changes(from, to) {
		if len(list) == limit {
			break
		}
		list = append(list, at)
	}
	return list
}

// Written returns the number of the Changes in [from, to) that are not deletions. It makes no list of them.
func (s *State) Written(from, to uint64) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.overlay.Load().Changes(from, to) {
		if !at.Deleted {
			n++
		}
	}
	return n
}

// Close releases the current index.
func (s *State) Close() error { return s.sets.Swap(nil) }
