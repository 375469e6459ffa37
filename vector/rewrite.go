package vector

import (
	"fmt"

	"github.com/varve-db/varve/index/table"
)

// rewrite is the state of one write of a new base or delta.
type rewrite struct {
	s       *Set
	to      Target
	p       Plan
	asDelta bool
	faiss   *faissWriter
	mapping *table.Writer
	skip    [kinds]map[string]bool
	// number of blocks of each level's FAISS file that copyRow has verified
	verified [2]int64
}

// rows writes the vectors of one kind of document into the FAISS file: it copies unchanged rows, and gets the vectors
// of edits from Plan.Vector.
func (r *rewrite) rows(kind Kind) error {
	m, err := r.s.merge(kind, r.p, r.asDelta, nil)
	if err != nil {
		return err
	}
	var vector []float32
	var row []byte
	for {
		c, ok, err := m.next()
		if err != nil || !ok {
			return err
		}
		if c.id == 0 {
			continue
		}
		if c.from != edited {
			if err := r.copyRow(c.from, c.row); err != nil {
				return err
			}
			continue
		}
		if vector, ok, err = r.p.Vector(vector[:0], kind, c.edit); err != nil {
			return fmt.Errorf("vector of %q: %w", c.edit.Key, err)
		}
		if !ok {
			r.skip[kind][c.edit.Key] = true
			continue
		}
		if len(vector) != r.to.Dim {
			return fmt.Errorf("vector of %q: %w: the vector has %d dimensions, but the files have %d", c.edit.Key,
				ErrDimension, len(vector),
				r.to.Dim)
		}
		if err := CheckFinite("vector", vector); err != nil {
			return fmt.Errorf("vector of %q: %w", c.edit.Key, err)
		}
		row = r.to.Metric.Row(row[:0], vector)
		if err := r.faiss.row(row); err != nil {
			return err
		}
	}
}

// copyRow copies a row from a FAISS file of the set into the new file. It verifies the block again, even if the block
// was verified before. Otherwise bytes that were damaged in the meantime would get a valid checksum in the new file.
func (r *rewrite) copyRow(level int, row int64) error {
	f := r.s.levels[level].f
	return f.guard(func() error {
		end := headSize + (row+1)*f.rowSize()
		for ; r.verified[level]*blockSize < end; r.verified[level]++ {
			if err := f.verify(int(r.verified[level])); err != nil {
				return err
			}
		}
		return r.faiss.row(f.bytes(row, row+1))
	})
}

// ids writes the ids of one kind of document into the FAISS file, and the lines of these documents into the mapping
// file. live is the number of documents of the kind that have a vector in the resulting set.
func (r *rewrite) ids(kind Kind) (live int64, err error) {
	m, err := r.s.merge(kind, r.p, r.asDelta, r.skip[kind])
	if err != nil {
		return 0, err
	}
	if r.asDelta {
		live = r.s.levels[base].t.Lines(int(kind))
	}
	var value []byte
	for {
		c, ok, err := m.next()
		if err != nil || !ok {
			return live, err
		}
		value = appendID(value[:0], c.id)
		if err := r.mapping.Entry(c.enc, value); err != nil {
			return live, err
		}
		if r.asDelta {
			hides, err := m.inBase(c.enc)
			if err != nil {
				return live, err
			}
			if hides {
				live--
			}
		}
		if c.id == 0 {
			continue
		}
		live++
		if err := r.faiss.id(c.id); err != nil {
			return live, err
		}
	}
}
