package table

import "github.com/varve-db/varve/internal/vfs"

// Walk iterates over the lines of one section of one table file, deletions included, in order. It verifies
// each block again, as every rewrite does: the lines are written to a new file, and damaged bytes must not get
// a new, valid checksum.
type Walk struct {
	c        *cursor
	verified int
	buf      []byte
	ends     [][2]int // ends of key and value of each line in buf
	i        int
	done     bool
}

// Walk returns an iterator before the first line. A nil table has no lines.
func (t *Table) Walk(sec int) *Walk {
	w := &Walk{c: newCursor(t, sec), done: t == nil}
	w.verified = w.c.next / blockSize
	return w
}

// Next returns the encoded key and the value of the next line. Both are valid until the next call. ok is false after
// the last line.
func (w *Walk) Next() (key, value []byte, ok bool, err error) {
	if w.i == len(w.ends) {
		if w.done {
			return nil, nil, false, nil
		}
		w.buf, w.ends, w.i = w.buf[:0], w.ends[:0], 0
		if err := w.c.t.guard(w.fill); err != nil {
			w.done = true
			w.ends = w.ends[:0]
			return nil, nil, false, err
		}
		if len(w.ends) == 0 {
			return nil, nil, false, nil
		}
	}
	from := 0
	if w.i > 0 {
		from = w.ends[w.i-1][1]
	}
	e := w.ends[w.i]
	w.i++
	return w.buf[from:e[0]:e[0]], w.buf[e[0]:e[1]:e[1]], true, nil
}

// fill copies lines from the mapped file into buf.
func (w *Walk) fill() error {
	for len(w.ends) < 256 && len(w.buf) < blockSize {
		if w.c.next < w.c.hi {
			if err := w.verify(w.c.next); err != nil {
				return err
			}
		}
		ok, err := w.c.step()
		if err != nil {
			return err
		}
		if !ok {
			w.done = true
			return nil
		}
		if err := w.verify(w.c.next - 1); err != nil {
			return err
		}
		w.buf = append(w.buf, w.c.key...)
		k := len(w.buf)
		w.buf = append(w.buf, w.c.value...)
		w.ends = append(w.ends, [2]int{k, len(w.buf)})
	}
	return nil
}

func (w *Walk) verify(off int) error {
	for ; w.verified <= off/blockSize; w.verified++ {
		if err := w.c.t.verifyBlock(w.verified); err != nil {
			return err
		}
	}
	return nil
}

// Stands reports whether the file that now has this table's name is still the file that the table has mapped.
func (t *Table) Stands(fsys vfs.FS, dir string) bool { return t.matchesFile(fsys, dir) }

// Decode returns the key whose encoded form is enc; ok is false if EncodeKey cannot have written enc.
func Decode(enc []byte) (key string, ok bool) {
	b, ok := appendDecoded(nil, enc)
	return string(b), ok
}
