package jsondoc

import "slices"

// Set sets the value of a member; an existing member keeps its place. If order names a new member, Set inserts the
// member directly after the nearest existing one of its predecessors in order, or else directly before the nearest
// existing one of its successors, so that unknown members keep their places. Any other new member goes to the end.
// value must be valid JSON at indent level 1; its text is kept.
func (o *Object) Set(name string, value []byte, order []string) {
	if i := o.index(name); i >= 0 {
		o.members[i].Value = value
		return
	}
	o.members = slices.Insert(o.members, o.place(name, order), Member{Name: name, Value: value})
}

func (o *Object) place(name string, order []string) int {
	rank := slices.Index(order, name)
	if rank < 0 {
		return len(o.members)
	}
	for r := rank - 1; r >= 0; r-- {
		if i := o.index(order[r]); i >= 0 {
			return i + 1
		}
	}
	for r := rank + 1; r < len(order); r++ {
		if i := o.index(order[r]); i >= 0 {
			return i
		}
	}
	return len(o.members)
}

// Remove removes a member and reports whether it existed.
func (o *Object) Remove(name string) bool {
	i := o.index(name)
	if i >= 0 {
		o.members = slices.Delete(o.members, i, i+1)
	}
	return i >= 0
}

// Rename gives a member another name in its place. It returns false and does nothing if there is no such
// member or the new name is taken.
func (o *Object) Rename(old, name string) bool {
	i := o.index(old)
	if i < 0 || o.index(name) >= 0 {
		return false
	}
	o.members[i].Name, o.members[i].quoted = name, nil
	return true
}

// Arrange brings the members that order names into that order, using only the places that they have together; all other
// members keep their places.
func (o *Object) Arrange(order []string) {
	var places []int
	var known []Member
	for i, m := range o.members {
		if slices.Contains(order, m.Name) {
			places, known = append(places, i), append(known, m)
		}
	}
	slices.SortStableFunc(known, func(a, b Member) int {
		return slices.Index(order, a.Name) - slices.Index(order, b.Name)
	})
	for k, i := range places {
		o.members[i] = known[k]
	}
}

// ReadAs returns the known name of a member of this name: the name itself, or the present name if it is an older one;
// "" for an unknown member. order has the known names, older the pairs of older and present names.
func ReadAs(name string, order []string, older ...[2]string) string {
	for _, o := range older {
		if name == o[0] {
			return o[1]
		}
	}
	if slices.Contains(order, name) {
		return name
	}
	return ""
}
