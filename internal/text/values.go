package text

// Values returns the texts of v, a member of the metadata that is a text or a list. It ignores elements of the list
// that are not texts, and returns nil for any other v.
func Values(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []string:
		return v
	case []any:
		var texts []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				texts = append(texts, s)
			}
		}
		return texts
	}
	return nil
}
