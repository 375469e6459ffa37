package state

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/wal"
)

// Only the entries of assemblies change which memories are in which assembly: each entry names all its members. So a
// writer of an assembly can name the new members, as it read them, in preconditions. But deleting a memory, or changing
// a field that an assembly derives from it, requires writing all assemblies that contain it in the same commit, and no
// version of a key expresses that no further assembly contains the memory by then.
//
// The key 'r' + id of a memory provides such a version: the highest version among the assemblies that contain the
// memory now, 0 if none does. A writer of a memory names it as it read it, together with the versions of the assemblies
// that it read. Between the read and the commit
//
//   - an assembly added the memory: its version is higher than all before, so the
//     version of this key differs;
//   - an assembly that the writer read changed or was deleted: the precondition on the
//     assembly fails, whatever the version of this key, which may then fall or stay;
//   - an assembly added the memory and removed it again: everything is as it was read.
//
// The version is a function of the state, so it is the same before and after a spill, in every process, and after a
// replay. An index made from the files gives versions that no frame has, the same one to several assemblies. Those are
// lower than the version of any later entry, and the preconditions on the assemblies themselves tell them apart.
//
// Entries that another process has appended, and that are not durable yet, are in no state. Also adds their keys to the
// log's view: an entry of an assembly counts for its own key and for 'r' + id of all its members. No writer can have
// read the version found there, so the commit is refused, waits until the entry is durable, and prepares again. An
// entry that removes a memory need not count for the memory's key: it counts for the assembly's.
//
// The key 'r' alone has version 0 as long as there is no assembly at all: then a commit needs no other precondition of
// this kind.

// Members is the first byte of the keys that MembersKey returns, which distinguishes these keys from those of
// documents.
const Members = 'r'

// Also implements wal.Machine: it returns the keys of memberships and Interests that a log entry changes.
func (s *State) Also(e *wal.Entry) []string {
	noted := s.interests.keys(e)
	if !isOf(e, kind.Assemblies) || e.Delete {
		return noted
	}
	v, err := Read(e)
	if err != nil {
		return noted // Apply reports it
	}
	ids, err := assembly.MembersOf(v.Line)
	if err != nil {
		return noted
	}
	keys := append(append(make([]string, 0, len(noted)+len(ids)+1), noted...), MembersKey(""))
	for _, id := range ids {
		keys = append(keys, MembersKey(id))
	}
	return keys
}

// MembersKey returns the key that preconditions use for the set of assemblies that contain a memory. If the id is "",
// the key stands for the assemblies of all memories.
func MembersKey(id string) string { return string(rune(Members)) + id }

// membership has the members of the assemblies that changed since the index was written. It complements the index
// sections members and by_member, in the same way as the overlay complements the index lines.
type membership struct {
	mu sync.Mutex // lock that is held for every change
	// Increases after every change, also when the index is replaced: a reader that reads epoch first has then
	// seen all changes that epoch counts.
	epoch atomic.Uint64
	any   atomic.Bool         // the store may have an assembly
	of    map[string]*group   // groups by assembly, including deleted assemblies
	in    map[string][]*group // groups by memory, including superseded groups
}

// group is one version of an assembly, with its members.
type group struct {
	assembly string
	version  uint64
	deleted  bool
	members  []string // ids of the members, sorted
}

func (m *membership) begin(set *index.Set) {
	m.of, m.in = map[string]*group{}, map[string][]*group{}
	m.any.Store(set.Count(index.Assemblies) > 0)
	m.epoch.Add(1)
}

func (m *membership) apply(assembly string, version uint64, deleted bool, members []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.epoch.Add(1)
	if !deleted {
		m.any.Store(true)
	}
	slices.Sort(members)
	if old := m.of[assembly]; old != nil && !old.deleted && !deleted && slices.Equal(old.members, members) {
		old.version = version
		return
	}
	g := &group{assembly: assembly, version: version, deleted: deleted, members: members}
	m.of[assembly] = g
	for _, id := range members {
		list := m.in[id]
		if len(list) == cap(list) { // drop superseded groups instead of growing
			list = slices.DeleteFunc(list, m.superseded)
		}
		m.in[id] = append(list, g)
	}
}

func (m *membership) superseded(g *group) bool { return m.of[g.assembly] != g }

// swap drops the groups that a newer index has. The caller holds mu.
func (m *membership) swap(set *index.Set) {
	defer m.epoch.Add(1)
	before := len(m.of)
	any := set.Count(index.Assemblies) > 0
	for id, g := range m.of {
		if g.version < set.LSN() {
			delete(m.of, id)
		} else if !g.deleted {
			any = true
		}
	}
	m.any.Store(any)
	if len(m.of) == before {
		return
	}
	m.in = map[string][]*group{}
	for _, g := range m.of {
		for _, id := range g.members {
			m.in[id] = append(m.in[id], g)
		}
	}
}

// grouping records the members that the log entry of an assembly has. It is called when the entry is applied.
func (s *State) grouping(e *wal.Entry, line []byte) error {
	ids, err := assembly.MembersOf(line)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	s.members.apply(strings.Clone(e.Key[1:]), e.LSN, e.Delete, ids) // the key is in the reader's buffer
	return nil
}

// Containing returns the ids of the assemblies that contain a memory, sorted, and the version of MembersKey(id): the
// highest version of these assemblies, 0 if no assembly contains the memory.
func (s *State) Containing(id string) (assemblies []string, newest uint64, err error) {
	for {
		swaps := s.swaps.Load()
		below, err := s.containingInIndex(id)
		if err != nil {
			return nil, 0, err
		}
		if assemblies, newest, ok := s.mergeContaining(id, below, swaps); ok {
			return assemblies, newest, nil
		}
	}
}

// mergeContaining returns the ids of the assemblies that contain the memory id, and the highest version of these
// assemblies. It combines indexed, the result of containingInIndex, with the changes since the index was written.
// swaps is the value that the counter of swaps had before indexed was read. If the index was replaced since then, ok
// is false and the other results are empty.
func (s *State) mergeContaining(id string, indexed []group,
	swaps uint64) (assemblies []string, newest uint64, ok bool) {
	m := &s.members
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.swaps.Load() != swaps {
		return nil, 0, false
	}
	for i := range indexed {
		if g := &indexed[i]; m.of[g.assembly] == nil {
			assemblies, newest = append(assemblies, g.assembly), max(newest, g.version)
		}
	}
	for _, g := range m.in[id] {
		if !m.superseded(g) {
			assemblies, newest = append(assemblies, g.assembly), max(newest, g.version)
		}
	}
	slices.Sort(assemblies)
	return assemblies, newest, true
}

// containingInIndex returns the assemblies that contain a memory according to the index, each with its version in
// the index.
func (s *State) containingInIndex(id string) ([]group, error) {
	set := s.sets.Acquire()
	if set == nil {
		return nil, errs.ErrClosed
	}
	defer set.Release()
	ids, err := index.Pairs(set, index.ByMember, id)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	list := make([]group, 0, len(ids))
	var buf []byte
	for _, a := range ids {
		line, ok, err := set.Get(buf[:0], index.Assemblies, a)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%w: the section by_member lists assembly %s, which has no line in the index",
				errs.ErrCorrupt, human.Quote(a))
		}
		buf = line
		e, err := index.ParseLine(line)
		if err != nil {
			return nil, fmt.Errorf("the index line of %s is invalid: %w", human.Quote(a), err)
		}
		list = append(list, group{assembly: a, version: e.Version})
	}
	return list, nil
}

// Grouped reports whether the store may have an assembly. If it returns false, the store has no assembly.
func (s *State) Grouped() bool { return s.members.any.Load() }

// MembershipRebuilt reports whether any assembly has changed since the current index was written.
func (s *State) MembershipRebuilt() bool {
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	return len(s.members.of) > 0
}

// currentMembers returns the current version of MembersKey(id), which the log compares with the version in a
// precondition. For the id of a memory, this is the highest version of the assemblies that contain the memory. For the
// id "", it is 1 if there are assemblies, and otherwise 0.
func (s *State) currentMembers(id string) (wal.LSN, error) {
	if id != "" {
		_, newest, err := s.Containing(id)
		return newest, err
	}
	if s.Grouped() {
		return 1, nil
	}
	return 0, nil
}

// MembersHint returns the Hint of a wal.Precondition on a key of MembersKey. Call it before the call of Containing or
// Grouped on whose result the precondition depends.
func (s *State) MembersHint() uint64 { return s.members.epoch.Load() + 1 }
