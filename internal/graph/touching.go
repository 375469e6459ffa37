package graph

// Touching gives a function that says of a memory whether it is a relation with one of the names at
// an end. Where doc is nil, for it is not at hand, it says so of every relation.
func Touching(names ...string) func(id string, doc []byte) bool {
	unwanted := make(map[string]bool, len(names))
	for _, n := range names {
		unwanted[n] = true
	}
	return func(id string, doc []byte) bool {
		if !IsRelationID(id) {
			return false
		}
		if doc == nil {
			return true
		}
		n, ok := Read(id, doc)
		return ok && n.Relation != nil && (unwanted[n.Relation.From] || unwanted[n.Relation.To])
	}
}
