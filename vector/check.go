package vector

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/varve-db/varve/index/table"
)

// Verify reads all vector files of a set and yields every error. It checks the mapping files, each block and the head
// of the FAISS files, that each id in a FAISS file equals the id in the mapping file, and that no id occurs twice. It
// reads all blocks again, even if an earlier search has verified them. It needs 16 bytes of heap per vector.
func Verify(s *Set) iter.Seq[error] {
	return func(yield func(error) bool) {
		sound := true
		report := func(err error) bool {
			sound = false
			return yield(err)
		}
		for _, l := range s.levels {
			if l == nil {
				continue
			}
			for err := range l.t.Check() {
				if !report(err) {
					return
				}
			}
			if !l.f.check(report) {
				return
			}
		}
		if !sound {
			return // errors that follow from damaged files add nothing
		}
		c := checker{s: s, yield: yield, ids: map[int64]string{}}
		if err := s.ready(); err != nil {
			yield(err)
			return
		}
		for i, l := range s.levels {
			if l != nil && !c.level(i, l) {
				return
			}
		}
		c.counts()
	}
}

// check verifies every block and the head of a FAISS file, and calls report with each error. It stops and returns false
// as soon as report returns false.
func (f *file) check(report func(error) bool) bool {
	for b := 0; b*blockSize < len(f.data); b++ {
		if err := f.guard(func() error { return f.verify(b) }); err != nil && !report(err) {
			return false
		}
	}
	err := f.guard(func() error {
		if !bytes.Equal(f.data[:headSize], f.header()) {
			return f.damaged(0, errors.New("the header of the FAISS file does not match the mapping"))
		}
		return nil
	})
	return err == nil || report(err)
}

type checker struct {
	s     *Set
	yield func(error) bool
	ids   map[int64]string
	live  [kinds]int64
}

// level compares the ids in a FAISS file with the ids in the lines of its mapping file. i is the number of the level:
// base or delta. level returns false if the caller has ended the loop over the errors.
func (c *checker) level(i int, l *level) bool {
	for kind := range kinds {
		w := l.t.Walk(int(kind))
		row := l.first[kind] - 1
		for {
			key, value, ok, err := w.Next()
			if err != nil {
				return c.yield(err)
			}
			if !ok {
				break
			}
			if isDead(value) {
				continue
			}
			row++
			name, _ := table.Decode(key)
			id, err := parseID(value)
			if err != nil {
				return c.yield(corrupt(l.t.Name(), err))
			}
			is, err := l.f.id(row)
			switch {
			case err != nil:
				return c.yield(err)
			case is != id:
				if !c.yield(l.f.damaged(l.f.idsAt()+idsHead+8*row,
					fmt.Errorf("the FAISS file has id %d for %q, but the mapping has id %d", is, name, id))) {
					return false
				}
			}
			if i == base && c.s.hidden.has(row) {
				continue // the line of the delta counts
			}
			c.live[kind]++
			if other, twice := c.ids[id]; twice {
				if !c.yield(corrupt(l.t.Name(), fmt.Errorf("%w: id %d belongs to both %q and %q", errTwice, id, other, name))) {
					return false
				}
			}
			c.ids[id] = name
		}
	}
	return true
}

func (c *checker) counts() {
	for kind := range kinds {
		if c.live[kind] != c.s.count[kind] {
			if !c.yield(corrupt(c.s.top().t.Name(),
				fmt.Errorf("the mapping lists %d vectors, but its metadata have the count %d", c.live[kind],
					c.s.count[kind]))) {
				return
			}
		}
	}
}
