package graph

// Touching returns a function that reports whether a memory is a relation that begins or ends at one of the names. If
// doc is nil because the document is not available, the function returns true for every relation.
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
