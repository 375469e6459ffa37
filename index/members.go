package index

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/errs"
)

// The members of an assembly are in its document. For replaying the log they are also at the end of the
// assembly's line in the log: ,"members":["id", …]}. The tables have pairs instead, in both directions, so that
// neither a line nor a look-up grows with the assembly.

var membersMember = []byte(`,"members":[`)

// MemberPrefix returns the prefix that all keys of an assembly have in the index section members, and all keys of a
// memory in the section by_member. id is the id of the assembly or memory.
func MemberPrefix(id string) string { return SessionPrefix(id) }

// MemberKey returns the key for an assembly and one of its members. In the index section members, first is the
// assembly and second the memory; in the section by_member, first is the memory and second the assembly.
func MemberKey(first, second string) string { return MemberPrefix(first) + second }

// SplitMemberKey is the inverse of MemberKey: it returns the arguments for which MemberKey returned key. ok is false if
// key is not a key that MemberKey can return.
func SplitMemberKey(key string) (first, second string, ok bool) { return SplitSessionKey(key) }

// Pairs returns the ids that the index pairs with the id first: the members of an assembly (sec is Members) or the
// assemblies of a memory (sec is ByMember).
func Pairs(s *Set, sec int, first string) ([]string, error) {
	if s.Count(sec) == 0 {
		return nil, nil
	}
	prefix := MemberPrefix(first)
	var list []string
	for it, err := range s.Range(sec, Span{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		list = append(list, string(it.Key[len(prefix):]))
	}
	return list, nil
}

// membership derives the index pairs of changed assemblies: it removes the pairs of members that an assembly
// no longer has, and adds those of new members.
func (p *pairs) membership(e *lineEdits) error {
	for _, sc := range e.list {
		c := &p.ch.List[sc.i]
		old, err := Pairs(p.set, Members, c.ID)
		if err != nil {
			return fmt.Errorf("reading the members of assembly %q: %w", c.ID, err)
		}
		now := slices.Clone(c.Members)
		if c.Deleted {
			now = nil
		}
		slices.Sort(now)
		slices.Sort(old)
		for _, id := range old {
			if _, stays := slices.BinarySearch(now, id); !stays {
				p.pair(c.ID, id, false)
			}
		}
		for _, id := range now {
			if _, was := slices.BinarySearch(old, id); !was {
				p.pair(c.ID, id, true)
			}
		}
	}
	return nil
}

func (p *pairs) pair(assembly, memory string, live bool) {
	p.members = append(p.members, pairEdit{escape(MemberKey(assembly, memory)), live})
	p.byMember = append(p.byMember, pairEdit{escape(MemberKey(memory, assembly)), live})
}

// counted returns an error unless the member_count in the index line of an assembly equals the number of c.Members.
// The check finds a writer that provides a line without its members, which would lose them.
func counted(line []byte, c *Change) error {
	e, err := ParseLine(line)
	if err == nil && e.MemberCount != int64(len(c.Members)) {
		err = fmt.Errorf("%w: the index line has the member count %d, but the change lists %d members",
			errLine, e.MemberCount, len(c.Members))
	}
	if err != nil {
		return fmt.Errorf("new index line of %q: %w", c.ID, err)
	}
	return nil
}

// removeMembers adds changes that remove the memories with these ids from all assemblies in s. In the index line of
// such an assembly, only the member count changes.
func (ch *Changes) removeMembers(s *Set, ids []string) error {
	var assemblies []string
	for _, id := range ids {
		list, err := Pairs(s, ByMember, id)
		if err != nil {
			return err
		}
		assemblies = append(assemblies, list...)
	}
	slices.Sort(assemblies)
	for _, a := range slices.Compact(assemblies) {
		members, err := Pairs(s, Members, a)
		if err != nil {
			return err
		}
		members = slices.DeleteFunc(members, func(id string) bool { return slices.Contains(ids, id) })
		line, ok, err := s.Get(nil, Assemblies, a)
		if err != nil || !ok {
			return errors.Join(err,
				fmt.Errorf("%w: the index lists members of assembly %q, but has no line of the assembly",
					errs.ErrCorrupt, a))
		}
		e, err := ParseLine(line)
		if err != nil {
			return err
		}
		was, is := countMember(e.MemberCount), countMember(int64(len(members)))
		ch.List = append(ch.List, Change{Section: Assemblies, ID: a, Version: e.Version, Members: members,
			Finished: bytes.Replace(line, was, is, 1)})
	}
	return nil
}

// countMember returns the JSON text ,"member_count":n as index lines have it. It cannot occur inside a JSON
// string, where each quote has a backslash before it.
func countMember(n int64) []byte { return fmt.Appendf(nil, `,"member_count":%d,`, n) }
