package table

// cursor iterates over the lines of a section of a table. It reads the mapped file, so its methods must be called
// inside Table.guard.
type cursor struct {
	t      *Table
	at, hi int // offset of the current line, and end of the section
	next   int // offset of the next line
	key    []byte
	value  []byte
}

// newCursor returns a cursor before the first line. A nil table has no lines.
func newCursor(t *Table, sec int) *cursor {
	if t == nil {
		return &cursor{}
	}
	s := t.sections[sec]
	return &cursor{t: t, at: int(s.start), next: int(s.start), hi: int(s.end)}
}

// step moves to the next line. ok is false after the last one.
func (c *cursor) step() (ok bool, err error) {
	c.at = c.next
	return c.load()
}

func (c *cursor) load() (ok bool, err error) {
	if c.at >= c.hi {
		c.key, c.value = nil, nil
		return false, nil
	}
	end, err := c.t.lineEnd(c.at, c.at, c.hi)
	if err != nil {
		return false, err
	}
	c.next = end
	n := keyEnd(c.t.data[c.at+1 : end])
	if n < 0 {
		return false, c.t.damaged(int64(c.at), errLine)
	}
	c.key = c.t.data[c.at+1 : c.at+1+n]
	c.value, err = c.t.value(c.at, end, n)
	return err == nil, err
}

// seek moves forward to the first line whose encoded key is not below k. If the key of that line equals k, seek loads
// the line and returns true.
func (c *cursor) seek(k []byte) (ok bool, err error) {
	if c.next >= c.hi {
		c.at = c.next
		return false, nil
	}
	f, err := c.t.seek(k, c.next, c.hi)
	if err != nil {
		return false, err
	}
	c.at, c.next = f.start, f.end
	if f.start == f.end {
		return false, nil
	}
	c.key = c.t.data[f.start+1 : f.start+1+len(k)]
	c.value, err = c.t.value(f.start, f.end, len(k))
	return err == nil, err
}
