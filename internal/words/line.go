package words

import "github.com/varve-db/varve/internal/words/order"

// keyColumns gives for each order the section of a segment that has the sort keys of all rows. The order by size is
// not in it: see Segment.Key.
var keyColumns = [...]int{order.ByTime: secTime, order.ByCreated: secCreated, order.ByUpdated: secUpdated,
	order.ByScore: secScore}

// Key returns the sort key of row r in order o.
func (s *Segment) Key(o order.Order, r uint32) (int64, error) {
	if o == order.BySize {
		n, err := s.column32(secSize, int(r))
		return int64(n), err
	}
	n, err := s.column64(keyColumns[o], int(r))
	return int64(n), err
}

// Expires returns when row r expires, in microseconds since 1970.
func (s *Segment) Expires(r uint32) (int64, error) {
	v, err := s.column64(secExpires, int(r))
	return int64(v), err
}

// Ranked returns the number of the row that has index i when the rows of the segment are sorted in order o.
func (s *Segment) Ranked(o order.Order, i int) (uint32, error) {
	r, err := s.column32(secByTime+int(o)-1, i)
	if err == nil && int(r) >= s.Rows {
		err = broken("sort order %d names row %d, but the segment has %d rows", o, r, s.Rows)
	}
	return r, err
}

// Line returns the metadata of row r besides words and time.
func (s *Segment) Line(r uint32) (l order.Line, err error) {
	for i, to := range [...]*int64{&l.Created, &l.Updated, &l.Expires} {
		v, err := s.column64(secCreated+i, int(r))
		if err != nil {
			return l, err
		}
		*to = int64(v)
	}
	score, err := s.column64(secScore, int(r))
	if err == nil {
		l.Score = order.Score(int64(score))
		l.Size, err = s.column32(secSize, int(r))
	}
	return l, err
}

// Columns returns four encoded columns with the values of all rows: the times of creation, update and expiry (8 bytes
// each), and the sizes (4 bytes each).
func (s *Segment) Columns() (list [4][]byte, err error) {
	for i, sec := range []int{secCreated, secUpdated, secExpires, secSize} {
		if list[i], err = s.section(sec); err != nil {
			break
		}
	}
	return list, err
}
