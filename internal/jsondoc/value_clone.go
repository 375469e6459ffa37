package jsondoc

import "reflect"

// CloneMap returns a deep copy of a map with the types that DecodeMap returns. For lists and maps of other types, such
// as []string, it copies only the list or map itself. It copies nothing that is nested deeper than maxDepth, so that it
// also ends for a map that contains itself; encoding such a map fails later.
func CloneMap(m map[string]any, maxDepth int) map[string]any {
	c := make(map[string]any, len(m))
	for k, v := range m {
		c[k] = cloneValue(v, maxDepth-1)
	}
	return c
}

func cloneValue(v any, depth int) any {
	if depth <= 0 {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		return CloneMap(v, depth)
	case []any:
		if v == nil {
			return v
		}
		c := make([]any, len(v))
		for i := range v {
			c[i] = cloneValue(v[i], depth-1)
		}
		return c
	case nil, string, bool, float64:
		return v
	}
	return cloneOther(reflect.ValueOf(v)).Interface()
}

// cloneOther copies a list or a map of a type that DecodeMap does not create, for example []string or map[string]int.
func cloneOther(v reflect.Value) reflect.Value {
	switch {
	case v.Kind() == reflect.Slice && !v.IsNil():
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		return c
	case v.Kind() == reflect.Map && !v.IsNil():
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			c.SetMapIndex(it.Key(), it.Value())
		}
		return c
	}
	return v
}
