package commit

import "reflect"

// frameBytes is about what a frame has besides what is counted: header, key, line, the members of a
// document.
const frameBytes = 700

// bytesOf is about how many bytes of log the operations will take. Writers are slowed by it while the log is
// far ahead of the files, before anything is encoded.
func bytesOf(ops []Op) (n int64) {
	for i := range ops {
		n += frameBytes
		if m := ops[i].Memory; m != nil {
			n += int64(len(m.Content)+8*len(m.Embedding)) + bytesIn(m.Metadata)
		}
		if a := ops[i].Assembly; a != nil {
			n += int64(len(a.Description)) + bytesIn(a.MemoryIDs)
		}
		if w := ops[i].Work; w != nil {
			n += int64(len(w.Value))
		}
	}
	return n
}

// weighMost is of how many values of a document the bytes are counted: one that is in itself has no end.
const weighMost = 1 << 16

// bytesIn is about how many bytes of JSON a value takes.
func bytesIn(v any) int64 {
	left := weighMost
	return weigh(v, &left)
}

func weigh(v any, left *int) (n int64) {
	if *left--; *left < 0 {
		return 0
	}
	switch v := v.(type) {
	case nil:
		return 0
	case string:
		return int64(len(v)) + 3
	case []string:
		for _, w := range v {
			n += int64(len(w)) + 3
		}
		return n
	case []any:
		for i := 0; i < len(v) && *left > 0; i++ {
			n += weigh(v[i], left)
		}
		return n
	case map[string]any:
		for name, w := range v {
			if *left <= 0 {
				break
			}
			n += int64(len(name)) + 4 + weigh(w, left)
		}
		return n
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.String:
		return 8 * int64(r.Len())
	}
	return 8
}
