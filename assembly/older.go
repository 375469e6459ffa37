package assembly

import (
	"errors"
	"fmt"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
)

// Pairs of names of members: the name that other systems used, and the current name.
const (
	olderID             = "id"
	olderLastActivation = "last_activated"
	olderMembers        = "memories"
)

func olderNames() [2][2]string {
	return [2][2]string{{olderID, memberID}, {olderLastActivation, memberLastActivation}}
}

// isMemory reports whether a document without assembly_id is a memory. Then its id is not an older form of
// assembly_id: a memory that was moved among the assemblies has an id as well, and a content, which no assembly has.
func isMemory(o *jsondoc.Object) bool {
	_, ok := o.Get("content")
	return ok
}

// takeCopies moves the ids in the member memories, which has whole memories or ids, to memory_ids, and removes
// memories: the copies in it are stale, and would never be updated. If both members exist, it appends the ids that
// only memories has. If memories has another type, it stays if memory_ids exists; without memory_ids that is an error,
// since members would be lost.
func takeCopies(o *jsondoc.Object) (taken bool, err error) {
	raw, ok := o.Get(olderMembers)
	if !ok || raw[0] == 'n' {
		return false, nil
	}
	listed, named := o.Get(memberMemoryIDs)
	ids, err := idsOf(raw)
	if err != nil {
		if named {
			return false, nil
		}
		return false, jsondoc.InField(olderMembers, err)
	}
	if named {
		first, err := jsondoc.DecodeStrings(listed)
		if err != nil {
			return false, jsondoc.InField(memberMemoryIDs, err)
		}
		ids = united(first, ids)
	}
	text, err := jsondoc.AppendStrings(nil, ids, 1)
	if err != nil {
		return false, jsondoc.InField(olderMembers, err)
	}
	o.Set(memberMemoryIDs, text, memberOrder())
	o.Remove(olderMembers)
	return true, nil
}

// idsOf returns the ids in a list of ids, or of objects that have one.
func idsOf(raw []byte) ([]string, error) {
	ids := []string{}
	err := jsondoc.EachElement(raw, func(i int, v []byte) error {
		if v[0] == '{' {
			o, err := jsondoc.Parse(v, jsondoc.DeepestDepth)
			if err != nil {
				return err
			}
			v, _ = o.Get("id")
		}
		id, ok := jsondoc.DecodeString(v)
		if !ok || id == "" {
			return &errs.FieldError{Field: fmt.Sprintf("[%d]", i), Err: errors.New("neither an id nor an object with an id")}
		}
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

// dropStale removes a member with an older name beside the one with the present name if the value of the present one
// has changed, since the older value would then be wrong. It does not update the older one, because only one known
// reader uses it, and that one reads both.
func (a *Assembly) dropStale(e *jsondoc.MemberEditor) {
	if raw, ok := a.source.Get(memberID); ok && !jsondoc.EqualString(raw, a.ID) {
		e.Remove(olderID)
	}
	if raw, ok := a.source.Get(memberLastActivation); ok {
		was, err := jsondoc.DecodeTime(raw, nil)
		// The year 1 is no time, and is not written: the older name would become the valid one.
		if gone := a.LastActivation.IsZero() && raw[0] != 'n'; gone || err != nil || !was.Equal(a.LastActivation) {
			e.Remove(olderLastActivation)
		}
	}
}

// ReadAs returns the name of the member as which Decode reads a member of this name, "" for a member that it keeps
// unchanged.
func ReadAs(name string) string {
	older := olderNames()
	return jsondoc.ReadAs(name, memberOrder(), append(older[:], [2]string{olderMembers, memberMemoryIDs})...)
}
