package commit

import "reflect"

// frameBytes is an estimate of the bytes of a log entry that bytesOf does not measure: the frame's header, the
// key, the index line, the names of the document's members.
const frameBytes = 700

// bytesOf estimates how many bytes of log the operations will take, before anything is encoded. The estimate decides
// how much writers are slowed down while the document files are far behind the log.
func bytesOf(ops []Op) (n int64) {
	for i := range ops {
		n += frameBytes
		if m := ops[i].Memory; m != nil {
			n += int64(len(m.Content)+8*(len(m.Embedding)+len(m.HyperbolicEmbedding))) + bytesIn(m.Metadata)
		}
		if a := ops[i].Assembly; a != nil {
			n += int64(len(a.Description) + 8*(len(a.CompositeEmbedding)+len(a.HyperbolicEmbedding)))
			for _, v := range []any{a.MemoryIDs, a.Keywords, a.Tags, a.Topics, a.MergedFrom, a.EmotionProfile} {
				n += bytesIn(v)
			}
		}
		if w := ops[i].Work; w != nil {
			n += int64(len(w.Value))
		}
	}
	return n
}

// weighMost is the maximum number of values in a document that are measured. The estimate assumes that the other values
// are as large as these. The maximum also ends the measuring of a value that contains itself.
const weighMost = 1 << 16

// bytesIn estimates the number of bytes of JSON that a value takes.
func bytesIn(v any) int64 {
	w := weigher{left: weighMost}
	return w.of(reflect.ValueOf(v))
}

// weighLimit is a number of bytes that no document reaches, at which measuring stops.
const weighLimit = 1 << 30

type weigher struct{ left int }

func (w *weigher) of(v reflect.Value) (n int64) {
	w.left--
	switch v.Kind() {
	case reflect.Invalid:
		return 5 // null
	case reflect.String:
		return int64(v.Len()) + 3
	case reflect.Interface, reflect.Pointer:
		if w.left <= 0 {
			return 8
		}
		return w.of(v.Elem())
	case reflect.Struct:
		return w.some(v.NumField(), func(i int) int64 { return 8 + w.of(v.Field(i)) })
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return int64(v.Len())*4/3 + 2
		}
		return w.some(v.Len(), func(i int) int64 { return w.of(v.Index(i)) })
	case reflect.Map:
		it := v.MapRange()
		return w.some(v.Len(), func(int) int64 {
			if !it.Next() {
				return 0
			}
			return 4 + w.of(it.Key()) + w.of(it.Value())
		})
	}
	return 8 // a number
}

// some returns the sum of the sizes of n values, at most weighLimit. sizeOf returns the size of value i. As soon as
// weighMost values have been measured in all, the sum is extrapolated from the measured values.
func (w *weigher) some(n int, sizeOf func(i int) int64) (sum int64) {
	for i := range n {
		if w.left <= 0 {
			return min(sum/int64(max(i, 1))*int64(n), weighLimit)
		}
		sum = min(sum+sizeOf(i), weighLimit)
	}
	return sum
}
