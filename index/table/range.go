package table

import (
	"bytes"
	"iter"
)

// Span selects a range of keys of a section.
type Span struct {
	From   string // first key of the span; "" means the first key of the section
	After  bool   // the span does not include From itself
	Prefix string // the span has only keys with this prefix
}

// Item is a key that exists, with its value. The bytes are valid until the next step of the iteration.
type Item struct{ Key, Value []byte }

// Range yields the existing keys of a section with their values, in the order of the file. An error ends the
// iteration. Range holds its own reference to the set.
func (s *Set) Range(sec int, sp Span) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if !s.Retain() {
			yield(Item{}, errReleased)
			return
		}
		defer func() { _ = s.Release() }()
		w := walk{s: s, sec: sec, base: newCursor(s.base, sec), delta: newCursor(s.delta, sec)}
		if err := w.start(sp); err != nil {
			yield(Item{}, err)
			return
		}
		// Only reading the mapping runs under guard, not the caller's code. So items are copied in batches, which grow,
		// so that stopping early costs little.
		for n := 4; ; n = min(n*2, 256) {
			more, err := w.fill(n)
			for i := range w.ends {
				if !yield(w.item(i), nil) {
					return
				}
			}
			if err != nil {
				yield(Item{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// walk merges the entries of a section in base with those in delta, in the order of their keys.
type walk struct {
	s           *Set
	sec         int
	base, delta *cursor
	hasB, hasD  bool // whether each cursor is at a line
	prefix      []byte
	buf         []byte
	ends        [][2]int // ends of key and value of each entry in buf
}

// start moves the cursors of base and delta to their first line in the span.
func (w *walk) start(sp Span) error {
	from, err := EncodeKey(sp.From)
	if err != nil {
		return err
	}
	prefix, err := EncodeKey(sp.Prefix)
	if err != nil {
		return err
	}
	w.prefix = []byte(prefix)
	after := sp.After
	if from < prefix {
		from, after = prefix, false
	}
	if w.hasB, err = w.place(w.base, from, after); err != nil {
		return err
	}
	w.hasD, err = w.place(w.delta, from, after)
	return err
}

func (w *walk) place(c *cursor, from string, after bool) (ok bool, err error) {
	if c.t == nil {
		return false, nil
	}
	err = c.t.guard(func() error {
		if from != "" || after {
			f, err := c.t.find(w.sec, []byte(from))
			if err != nil {
				return err
			}
			c.at = f.start
			if after {
				c.at = f.end
			}
		}
		ok, err = c.load()
		return err
	})
	return ok, err
}

// fill replaces the contents of buf by the next items of the mapped files: at most n items, and fewer if they exceed
// the size of a block. more is false if the walk has reached the end of the section or of the span.
func (w *walk) fill(n int) (more bool, err error) {
	w.buf, w.ends = w.buf[:0], w.ends[:0]
	t := w.base.t // only used to name the file in errors
	if t == nil {
		t = w.delta.t
	}
	if t == nil {
		return false, nil
	}
	err = t.guard(func() error {
		for len(w.ends) < n && len(w.buf) < blockSize {
			ok, err := w.one()
			if !ok || err != nil {
				more = false
				return err
			}
		}
		more = true
		return nil
	})
	return more, err
}

// one copies the next existing key with its value into buf. It skips deletions in the delta, and entries of the base
// that the delta replaces or deletes. ok is false at the end of the section or of the span.
func (w *walk) one() (ok bool, err error) {
	for w.hasB || w.hasD {
		order := 0
		switch {
		case !w.hasD:
			order = -1
		case !w.hasB:
			order = 1
		default:
			order = bytes.Compare(w.base.key, w.delta.key)
		}
		c := w.delta
		if order < 0 {
			c = w.base
		}
		if !bytes.HasPrefix(c.key, w.prefix) {
			w.hasB, w.hasD = false, false // the smaller key is past the prefix, so both are
			return false, nil
		}
		live := order < 0 || !w.s.sch.Sections[w.sec].Dead(c.value)
		if live {
			if w.buf, ok = appendDecoded(w.buf, c.key); !ok {
				return false, c.t.damaged(int64(c.at), errLine)
			}
			k := len(w.buf)
			w.buf = append(w.buf, c.value...)
			w.ends = append(w.ends, [2]int{k, len(w.buf)})
		}
		if order <= 0 {
			if w.hasB, err = w.base.step(); err != nil {
				return false, err
			}
		}
		if order >= 0 {
			if w.hasD, err = w.delta.step(); err != nil {
				return false, err
			}
		}
		if live {
			return true, nil
		}
	}
	return false, nil
}

func (w *walk) item(i int) Item {
	from := 0
	if i > 0 {
		from = w.ends[i-1][1]
	}
	k, v := w.ends[i][0], w.ends[i][1]
	return Item{Key: w.buf[from:k:k], Value: w.buf[k:v:v]}
}
