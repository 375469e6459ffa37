package jsondoc

import "slices"

// Set sets the value of a member. An existing member keeps its place. If order contains the name of a new member, Set
// inserts the member directly after the nearest existing member that precedes it in order, or, if none exists, directly
// before the nearest existing member that follows it in order. So unknown members keep their places. Any other new
// member goes to the end. value must be valid JSON at indent level 1; its text is kept.
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

// Rename gives a member another name in its place. It returns false and does nothing if no member has the old name, or
// if another member has the new name.
func (o *Object) Rename(old, name string) bool {
	i := o.index(old)
	if i < 0 || o.index(name) >= 0 {
		return false
	}
	o.members[i].Name, o.members[i].quoted = name, nil
	return true
}

// Arrange sorts the members whose names are in order: afterwards they have the order of the list. These members only
// exchange their places with each other; all other members keep their places.
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

// ReadAs returns the present name of a member: name itself if order contains it, or the new name if name is an old one.
// It returns "" for an unknown member. order has the present names; older has pairs of an old and a present name.
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
