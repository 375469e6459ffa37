package table

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"
)

// Check reads the whole table and yields every error: in the metadata, each block, the heads of the sections, each
// line, the order and the counts. If the metadata, a block or a head has an error, Check does not check the lines. It
// also reads blocks again that an earlier look-up has verified.
func (t *Table) Check() iter.Seq[error] {
	return func(yield func(error) bool) {
		c := checker{t: t}
		c.steps = append(c.steps, c.end)
		for b := 0; b*blockSize < t.body; b++ {
			c.steps = append(c.steps, func() error { return t.verifyBlock(b) })
		}
		for sec := range t.present {
			c.steps = append(c.steps, func() error { return c.head(sec) })
		}
		c.steps = append(c.steps, c.foot)
		for _, step := range c.steps {
			if err := t.guard(step); err != nil {
				c.bad = true
				if !yield(err) {
					return
				}
			}
		}
		if c.bad {
			return // errors in the lines of damaged blocks add nothing
		}
		for sec := range t.sections {
			l := lineCheck{t: t, sec: sec, at: int(t.sections[sec].start)}
			for !l.done {
				if err := t.guard(l.checkBatch); err != nil {
					l.faults = append(l.faults, err)
					l.done = true
				}
				for _, err := range l.faults {
					if !yield(err) {
						return
					}
				}
				l.faults = l.faults[:0]
			}
		}
	}
}

type checker struct {
	t     *Table
	steps []func() error
	bad   bool
}

func (c *checker) end() error {
	t := c.t
	last := t.data[len(t.data)-endWidth:]
	off, hash, ok := parseEnd(last)
	if !ok || int(off) != t.body || xxhash.Sum64(t.data[t.body:len(t.data)-endWidth]) != hash {
		return t.damaged(int64(t.body), errors.New("checksum mismatch in the metadata"))
	}
	return nil
}

func (c *checker) head(sec int) error {
	t, want := c.t, c.t.sch.head(sec)
	end := t.sections[sec].start
	if at := end - int64(len(want)); string(t.data[at:end]) != want {
		return t.damaged(at, fmt.Errorf("section %q does not begin here", t.sch.Sections[sec].Name))
	}
	return nil
}

func (c *checker) foot() error {
	t := c.t
	at := t.body - len(foot)
	if string(t.data[at:t.body]) != foot {
		return t.damaged(int64(at), errors.New("the sections do not end where the metadata begin"))
	}
	return nil
}

// lineCheck checks the lines of a section of a table, in batches of checkLines lines.
type lineCheck struct {
	t      *Table
	sec    int
	at     int
	lines  int64
	live   int64
	prev   []byte // previous encoded key; it points into the mapping
	key    []byte
	faults []error
	done   bool
}

const checkLines = 4096 // number of lines that are checked per call of guard

func (l *lineCheck) checkBatch() error {
	t, s := l.t, l.t.sections[l.sec]
	for range checkLines {
		if l.at == int(s.end) {
			l.done = true
			l.count()
			return nil
		}
		n := bytes.IndexByte(t.data[l.at:s.end], '\n')
		if n < 0 {
			l.fault(errors.New("the last line has no newline"))
			l.done = true
			return nil
		}
		next := l.at + n + 1
		l.one(t.data[l.at:next], next == int(s.end))
		l.at = next
		l.lines++
	}
	return nil
}

func (l *lineCheck) fault(err error) {
	l.faults = append(l.faults, l.t.damaged(int64(l.at), err))
}

// one checks one line of a table, including its newline; last reports whether the line is the last of its section.
func (l *lineCheck) one(line []byte, last bool) {
	n := -1
	if line[0] == '"' {
		n = keyEnd(line[1:])
	}
	if n < 0 {
		l.fault(errLine)
		return
	}
	enc := line[1 : 1+n]
	var ok bool
	if l.key, ok = appendDecoded(l.key[:0], enc); ok {
		again, err := EncodeKey(string(l.key))
		ok = err == nil && again == string(enc)
	}
	if !ok {
		l.fault(fmt.Errorf("the key %s is not escaped as RFC 8785 requires", enc))
	}
	if l.prev != nil && bytes.Compare(l.prev, enc) >= 0 {
		l.fault(fmt.Errorf("the key %s is out of order", enc))
	}
	l.prev = enc
	rest := line[1+n+1 : len(line)-1]
	hasComma := len(rest) > 0 && rest[len(rest)-1] == ','
	if hasComma == last || len(rest) < 2 || rest[0] != ':' {
		l.fault(errLine)
		return
	}
	if hasComma {
		rest = rest[:len(rest)-1]
	}
	sec := &l.t.sch.Sections[l.sec]
	if sec.Dead == nil || !sec.Dead(rest[1:]) {
		l.live++
	} else if l.t.name != l.t.sch.Delta() {
		l.fault(fmt.Errorf("%s has a value that marks a deletion, which only a delta may have", enc))
	}
	if sec.Valid != nil {
		if err := sec.Valid(rest[1:]); err != nil {
			l.fault(fmt.Errorf("%s: %w", enc, err))
		}
	}
}

// count compares the counts of lines and entries in the metadata with the counts that the check has found.
func (l *lineCheck) count() {
	s := l.t.sections[l.sec]
	name := l.t.sch.Sections[l.sec].Name
	if l.lines != s.lines {
		l.fault(fmt.Errorf("section %q has %d lines, but %d according to the metadata", name, l.lines, s.lines))
	}
	if l.t.name != l.t.sch.Delta() && l.live != s.live {
		l.fault(fmt.Errorf("section %q has %d entries, but %d according to the metadata", name, l.live, s.live))
	}
}
