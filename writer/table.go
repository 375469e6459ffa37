package writer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// AppendRow appends to dst the line of the file wal/writers that describes the writer w. store is the UUID of the
// store; the checksum of the line depends on it.
func AppendRow(dst []byte, store [16]byte, w *Writer) ([]byte, error) {
	line, err := w.Line()
	if err != nil {
		return dst, err
	}
	rest := append(strconv.AppendUint(nil, w.Since, 10), ' ')
	rest = append(rest, line...)
	dst = fmt.Appendf(dst, "%016x ", rowSum(store, rest))
	return append(append(dst, rest...), '\n'), nil
}

// ParseRow parses a line of the file wal/writers. store is the UUID of the store. ParseRow returns false if the line
// is invalid or its checksum does not match, for example because the line belongs to another store.
func ParseRow(row []byte, store [16]byte) (Writer, bool) {
	row, whole := bytes.CutSuffix(row, []byte("\n"))
	sum, rest, ok := bytes.Cut(row, []byte(" "))
	if !whole || !ok || len(sum) != 16 {
		return Writer{}, false
	}
	if string(sum) != fmt.Sprintf("%016x", rowSum(store, rest)) {
		return Writer{}, false
	}
	at, line, _ := bytes.Cut(rest, []byte(" "))
	since, err := strconv.ParseUint(string(at), 10, 64)
	if err != nil {
		return Writer{}, false
	}
	w, err := Parse(line)
	w.Since = since
	return w, err == nil
}

func rowSum(store [16]byte, rest []byte) uint64 {
	d := xxhash.New()
	_, _ = d.Write(store[:]) // it never fails
	_, _ = d.Write(rest)
	return d.Sum64()
}

// Table has the descriptions of a store's writers, in the order in which the log has them.
type Table struct {
	list []Writer
	of   map[uint32][]Writer // descriptions by number, each list in ascending order of their positions
}

// Add adds the description of a writer. It does nothing if the table already has a description with the same position
// Since.
func (t *Table) Add(w Writer) {
	i, found := place(t.list, w.Since)
	if found {
		return
	}
	if t.of == nil {
		t.of = map[uint32][]Writer{}
	}
	t.list = slices.Insert(t.list, i, w)
	same := t.of[w.Number]
	i, _ = place(same, w.Since)
	t.of[w.Number] = slices.Insert(same, i, w)
}

func place(list []Writer, pos uint64) (int, bool) {
	if n := len(list); n == 0 || list[n-1].Since < pos {
		return n, false
	}
	return slices.BinarySearchFunc(list, pos, func(w Writer, at uint64) int { return cmp.Compare(w.Since, at) })
}

// Drop removes the descriptions whose position Since is lower than pos.
func (t *Table) Drop(pos uint64) {
	n, _ := place(t.list, pos)
	if n == 0 {
		return
	}
	list := t.list[n:]
	*t = Table{}
	for _, w := range list {
		t.Add(w)
	}
}

// All returns the descriptions in the order of the log.
func (t *Table) All() []Writer { return t.list }

// Set is a subset of the writers in a Table. Its method Has tests whether a writer in the set wrote a version.
type Set struct {
	of    map[uint32][]span
	first uint64
}

// span is a range of versions in which a number means the same writer. in reports whether the Set has this writer.
type span struct {
	since, until uint64
	in           bool
}

// Where returns the set of the writers for which match returns true.
func (t *Table) Where(match func(w *Writer) bool) *Set {
	s := &Set{of: map[uint32][]span{}}
	for i := range t.list {
		w := &t.list[i]
		spans := s.of[w.Number]
		if n := len(spans); n > 0 {
			spans[n-1].until = w.Since
		}
		in := match(w)
		s.of[w.Number] = append(spans, span{w.Since, 1<<64 - 1, in})
		if in && s.first == 0 {
			s.first = w.Since
		}
	}
	return s
}

// First returns the first position in the log at which a version by a writer of the set can be. If the set is empty,
// it returns the highest uint64.
func (s *Set) First() uint64 {
	if s.first == 0 {
		return 1<<64 - 1
	}
	return s.first
}

// Has reports whether a writer of the set wrote a version. number is the number of the writer in the log entry of the
// version.
func (s *Set) Has(number uint32, version uint64) bool {
	for _, p := range s.of[number] {
		if p.since <= version && version < p.until {
			return p.in
		}
	}
	return false
}

// Of returns the writer that wrote a version. number is the number of the writer in the log entry of the version. Of
// returns false if the table does not have the writer.
func (t *Table) Of(number uint32, version uint64) (Writer, bool) {
	if number == 0 {
		return Writer{}, false
	}
	for _, w := range slices.Backward(t.of[number]) {
		if w.Since <= version {
			return w, true
		}
	}
	return Writer{}, false
}
