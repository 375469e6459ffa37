package table

// Get appends the value of a key to dst; ok is false if the section does not have the key.
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
		var start int
		var err error
		dst, start, err = t.lookup(dst, sec, enc)
		ok = start >= 0
		return err
	})
	return dst, ok, err
}

// lookup appends the value of an encoded key to dst and returns the offset of the key's line, or -1 if the section
// does not have the key. It must be called inside Table.guard.
func (t *Table) lookup(dst []byte, sec int, enc string) (_ []byte, start int, err error) {
	var buf [128]byte
	k := append(buf[:0], enc...)
	f, known, err := t.findByOffset(sec, k)
	if err == nil && !known {
		f, err = t.find(sec, k)
	}
	if err != nil || f.start == f.end {
		return dst, -1, err
	}
	v, err := t.value(f.start, f.end, len(k))
	if err != nil {
		return dst, -1, err
	}
	return append(dst, v...), f.start, nil
}

// value returns the value of a line whose encoded key has n bytes.
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
