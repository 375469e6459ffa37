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

// Which memories are in which assembly changes with the entries of assemblies alone: each names all
// its members. So a writer of an assembly can name, as preconditions, the new members as it saw
// them. But deleting a memory, or changing what an assembly derives from it, requires writing all
// assemblies that contain it in the same commit, and no version of a key says that there is not one
// more of them by then.
//
// It is made one: the key 'r' + id of a memory has as its version the highest version among the
// assemblies that contain the memory now, 0 if none does. A writer of a memory names it as it saw
// it, beside the versions of the assemblies that it saw. Between his look and his commit
//
//   - an assembly took the memory in: its version is higher than all there were, so
//     this one's is another;
//   - one that he saw changed or went: its own precondition fails, whatever this
//     one says. That this one may fall then, or stay, does not matter;
//   - one took it in and let it go again: all is as he saw it.
//
// It is a function of the state, so it is the same before and after a spill, for
// every process, and after a replay. An index made from the files gives versions
// that no frame has, several assemblies the same one: those were never higher than
// an entry's that comes after, and which of them there are is again for their own
// preconditions to say.
//
// What another process has appended and is not durable yet is in no state. The log
// lays it over this key by Also: an entry of an assembly stands for its own key
// and for 'r' + id of all its members. The version found there is one that nobody
// can have seen, so the commit is refused, waits until the entry is durable, and
// prepares again. An entry that takes a memory out need not be laid over its key:
// it is laid over the assembly's.
//
// 'r' alone is 0 as long as there is no assembly at all: then it is the only thing
// that a commit has to ask.

// Members is the first byte of the key that stands for the membership of a memory.
const Members = 'r'

// Also is wal.Machine.Also.
func (s *State) Also(e *wal.Entry) []string {
	noted := s.interests.keys(e)
	if !isOf(e, kind.Assemblies) || e.Delete {
		return noted
	}
	v, err := Read(e)
	if err != nil {
		return noted // Apply says so
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

// MembersKey is the key of a memory's membership, with "" the key of all.
func MembersKey(id string) string { return string(rune(Members)) + id }

// membership lies over members and by_member of the set, as the overlay lies over
// its lines: it has the assemblies that changed since.
type membership struct {
	mu sync.Mutex // all that changes changes under it
	// goes up behind every change, also of the set below: a reader that reads it first has seen all that it counts
	epoch atomic.Uint64
	any   atomic.Bool         // there may be an assembly
	of    map[string]*group   // by assembly, those that are gone as well
	in    map[string][]*group // by memory; also groups that do not count any more
}

// group is one version of an assembly.
type group struct {
	assembly string
	version  uint64
	deleted  bool
	members  []string // sorted
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
		if len(list) == cap(list) { // not to grow with what has been superseded
			list = slices.DeleteFunc(list, m.superseded)
		}
		m.in[id] = append(list, g)
	}
}

func (m *membership) superseded(g *group) bool { return m.of[g.assembly] != g }

// swap forgets what a newer set has; mu is held.
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

// grouping takes an assembly's entry in.
func (s *State) grouping(e *wal.Entry, line []byte) error {
	ids, err := assembly.MembersOf(line)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	s.members.apply(strings.Clone(e.Key[1:]), e.LSN, e.Delete, ids) // the key lies in the reader's buffer
	return nil
}

// Containing are the assemblies that contain a memory, sorted, and the version of
// MembersKey(id): the highest of theirs.
func (s *State) Containing(id string) (assemblies []string, newest uint64, err error) {
	for {
		swaps := s.swaps.Load()
		below, err := s.below(id)
		if err != nil {
			return nil, 0, err
		}
		if assemblies, newest, ok := s.over(id, below, swaps); ok {
			return assemblies, newest, nil
		}
	}
}

// over lays what changed since over what a set says; false when the set has been
// replaced meanwhile.
func (s *State) over(id string, below []group, swaps uint64) (assemblies []string, newest uint64, ok bool) {
	m := &s.members
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.swaps.Load() != swaps {
		return nil, 0, false
	}
	for i := range below {
		if g := &below[i]; m.of[g.assembly] == nil {
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

// below is what the set says of a memory.
func (s *State) below(id string) ([]group, error) {
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
			return nil, fmt.Errorf("%w: by_member names the assembly %s, which is not in the index", errs.ErrCorrupt,
				human.Quote(a))
		}
		buf = line
		e, err := index.ParseLine(line)
		if err != nil {
			return nil, fmt.Errorf("index line of %s: %w", human.Quote(a), err)
		}
		list = append(list, group{assembly: a, version: e.Version})
	}
	return list, nil
}

// Grouped reports whether there may be an assembly: false is certain.
func (s *State) Grouped() bool { return s.members.any.Load() }

// MembershipRebuilt reports whether any assembly changed since the set was written.
func (s *State) MembershipRebuilt() bool {
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	return len(s.members.of) > 0
}

// currentMembers is Current of a memory's membership.
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

// MembersHint is for a precondition on what Containing or Grouped say after this call.
func (s *State) MembersHint() uint64 { return s.members.epoch.Load() + 1 }
