package table

// Get appends the value of a key to dst.
func (t *Table) Get(dst []byte, sec int, key string) (_ []byte, ok bool, err error) {
	enc, err := EncodeKey(key)
	if err != nil {
		return dst, false, err
	}
	return t.get(dst, sec, enc)
}

func (t *Table) get(dst []byte, sec int, enc string) (_ []byte, ok bool, err error) {
	if t.sections[sec].lines == 0 {
		return dst, false, nil
	}
	err = t.guard(func() error {
		var buf [128]byte
		k := append(buf[:0], enc...)
		f, err := t.find(sec, k)
		if err != nil || f.start == f.end {
			return err
		}
		v, err := t.value(f.start, f.end, len(k))
		if err != nil {
			return err
		}
		dst, ok = append(dst, v...), true
		return nil
	})
	return dst, ok, err
}

// value is the value on a line whose written key has n bytes.
func (t *Table) value(start, end, n int) ([]byte, error) {
	from, to := start+1+n+1, end-1
	if from+1 < to && t.data[to-1] == ',' {
		to--
	}
	if from+1 >= to || t.data[from] != ':' {
		return nil, t.damaged(int64(start), errLine)
	}
	return t.data[from+1 : to], nil
}
