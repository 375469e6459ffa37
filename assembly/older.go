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

// isMemory reports whether a document without assembly_id is a memory that was moved among the assemblies. A memory
// has a content, and no assembly has one. The id of a memory must not be read as an older form of assembly_id.
func isMemory(o *jsondoc.Object) bool {
	_, ok := o.Get("content")
	return ok
}

// takeCopies moves the ids in the older JSON member memories to memory_ids, and removes memories. memories is a list
// of ids or of copies of whole memories; such copies are out of date, and nothing would ever update them. If
// memory_ids exists, takeCopies appends the ids that only memories has. If memories is not such a list, memories stays
// unchanged, and without a memory_ids this is an error, because the assembly would lose its members. taken reports
// whether o was changed.
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

// idsOf returns the ids in a JSON list, whose elements are ids or objects that have an id.
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
			return &errs.FieldError{Field: fmt.Sprintf("[%d]", i), Err: errors.New("must be an id, or an object with " +
				"an id")}
		}
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

// dropStale removes the older names id and last_activated from a document that also has the current name of the
// member, if the value under the current name has changed. The value under the older name would then be wrong.
// dropStale removes it instead of updating it, because the only known reader of the older name reads both names.
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

// ReadAs returns the current name of the member that Decode reads under the given name. It returns "" for a member that
// Decode keeps unchanged.
func ReadAs(name string) string {
	older := olderNames()
	return jsondoc.ReadAs(name, memberOrder(), append(older[:], [2]string{olderMembers, memberMemoryIDs})...)
}
