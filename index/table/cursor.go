package table

// cursor walks over the lines of a section. It reads the mapping: use it under guard.
type cursor struct {
	t      *Table
	at, hi int // the current line begins at at; hi is the section's end
	next   int // where the line after it begins
	key    []byte
	value  []byte
}

// newCursor stands before the first line. A nil table has no lines.
func newCursor(t *Table, sec int) *cursor {
	if t == nil {
		return &cursor{}
	}
	s := t.sections[sec]
	return &cursor{t: t, at: int(s.start), next: int(s.start), hi: int(s.end)}
}

// step goes to the next line. ok is false behind the last one.
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

// seek goes forward to the first line whose written key is not below k. The
// line itself is loaded only when it is k's.
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
