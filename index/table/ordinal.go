package table

import (
	"bytes"
	"fmt"
	"sort"
)

// The lines of a section are numbered from 0. To find a line by its number, an open table counts its newlines once, on
// first use; the counts take 4 bytes of heap per 64 KiB.

// counts returns, for each block of the table, the number of newlines before it.
func (t *Table) counts() ([]uint32, error) {
	if c := t.newlines.Load(); c != nil {
		return *c, nil
	}
	n := len(t.blocks) / hashWidth
	c := make([]uint32, n+1)
	for b := range n {
		if err := t.touch(b); err != nil {
			return nil, err
		}
		lo := b * blockSize
		c[b+1] = c[b] + uint32(bytes.Count(t.data[lo:min(lo+blockSize, t.body)], newline))
	}
	t.newlines.Store(&c)
	return c, nil
}

// newlinesBefore returns the number of newlines before offset off; c is the result of counts.
func (t *Table) newlinesBefore(c []uint32, off int) int64 {
	b := off / blockSize
	return int64(c[b]) + int64(bytes.Count(t.data[b*blockSize:off], newline))
}

// Find returns the number of a key's line and appends its value to dst; line is -1 if the section does not have the
// key.
func (t *Table) Find(dst []byte, sec int, key string) (line int64, value []byte, err error) {
	enc, err := EncodeKey(key)
	if err != nil {
		return -1, dst, err
	}
	return t.FindEncoded(dst, sec, enc)
}

// FindEncoded is like Find, for a key that EncodeKey returned.
func (t *Table) FindEncoded(dst []byte, sec int, enc string) (line int64, value []byte, err error) {
	line = -1
	if t.sections[sec].lines == 0 {
		return line, dst, nil
	}
	err = t.guard(func() error {
		c, err := t.counts()
		if err != nil {
			return err
		}
		var start int
		if dst, start, err = t.lookup(dst, sec, enc); err != nil || start < 0 {
			return err
		}
		line = t.newlinesBefore(c, start) - t.newlinesBefore(c, int(t.sections[sec].start))
		return nil
	})
	return line, dst, err
}

// At returns the decoded key and the value of line number line of a section.
func (t *Table) At(sec int, line int64) (key string, value []byte, err error) {
	s := t.sections[sec]
	if line < 0 || line >= s.lines {
		return "", nil, fmt.Errorf("line %d is out of range: section %q has %d lines, numbered from 0", line,
			t.sch.Sections[sec].Name, s.lines)
	}
	err = t.guard(func() error {
		c, err := t.counts()
		if err != nil {
			return err
		}
		nth := t.newlinesBefore(c, int(s.start)) + line // the line begins after this many newlines, at least 1
		b := sort.Search(len(c), func(b int) bool { return int64(c[b]) >= nth }) - 1
		at := b * blockSize
		for left := nth - int64(c[b]); left > 0; left-- {
			i := bytes.IndexByte(t.data[at:t.body], '\n')
			if i < 0 {
				return t.damaged(int64(at), errLine)
			}
			at += i + 1
		}
		if at < int(s.start) || at >= int(s.end) {
			return t.damaged(int64(at), fmt.Errorf("the number of lines of section %q differs from the metadata",
				t.sch.Sections[sec].Name))
		}
		end, err := t.lineEnd(at, at, int(s.end))
		if err != nil {
			return err
		}
		n := keyEnd(t.data[at+1 : end])
		if n < 0 {
			return t.damaged(int64(at), errLine)
		}
		k, ok := appendDecoded(nil, t.data[at+1:at+1+n])
		if !ok {
			return t.damaged(int64(at), errLine)
		}
		v, err := t.value(at, end, n)
		if err != nil {
			return err
		}
		key, value = string(k), bytes.Clone(v)
		return nil
	})
	return key, value, err
}
