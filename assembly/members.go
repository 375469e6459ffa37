package assembly

import "slices"

// CheckMembers returns an error for a list of members that is too long (ErrLimit) or contains an invalid id
// (*errs.FieldError). A repeated id is not an error: Prepare keeps only its first occurrence.
func CheckMembers(ids []string, limits Limits) error {
	return limits.Resolved().checkIDs(memberMemoryIDs, ids)
}

// Has reports whether a memory is a member.
func (a *Assembly) Has(id string) bool { return slices.Contains(a.MemoryIDs, id) }

// Add appends memories to the members; memories that are members already keep their place. It returns the number of
// new members. Add never writes into the old array of MemoryIDs, which a copy of a may share.
func (a *Assembly) Add(ids ...string) int {
	was := len(a.MemoryIDs)
	a.MemoryIDs = united(a.MemoryIDs, ids)
	return len(a.MemoryIDs) - was
}

// Remove removes memories and returns the number of those that were members. Remove never writes into the old array of
// MemoryIDs, which a copy of a may share.
func (a *Assembly) Remove(ids ...string) int {
	out := make(map[string]bool, len(ids))
	for _, id := range ids {
		out[id] = true
	}
	kept := make([]string, 0, len(a.MemoryIDs))
	for _, id := range a.MemoryIDs {
		if !out[id] {
			kept = append(kept, id)
		}
	}
	removed := len(a.MemoryIDs) - len(kept)
	if removed > 0 {
		a.MemoryIDs = kept
	}
	return removed
}

// united returns the ids of list, followed by the ids of each list in more, each id only once. If the result
// equals list, united returns list itself.
func united(list []string, more ...[]string) []string {
	n := len(list)
	for _, m := range more {
		n += len(m)
	}
	seen := make(map[string]bool, n)
	out := make([]string, 0, n)
	for _, l := range append([][]string{list}, more...) {
		for _, s := range l {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	if slices.Equal(out, list) {
		return list
	}
	return out
}
