package text

// Values returns the texts of a member of the metadata, which may be a text or a list.
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
