package words

import (
	"encoding/binary"
	"fmt"
	"sort"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/words/build"
)

// Segment reads an encoded segment in place, without decoding all of it. Each block is verified against its checksum
// on first access. The methods of a Segment may be called concurrently. They return errs.ErrCorrupt for damage. They
// check the bounds of the content even if all checksums match.
type Segment struct {
	Rows     int
	Sessions int
	Print    uint64 // fingerprint of the analyzer
	Total    uint64 // sum of the lengths of all rows in words
	Format   uint32
	Sorted   bool // the segment has lines and orders; false for format 1

	b       []byte
	end     int
	at      [sections + 1]int
	terms   int
	checked []atomic.Bool
	whole   [sections]atomic.Bool
	Kept    Kept // cache of package rows
}

func broken(format string, a ...any) error {
	return fmt.Errorf("%w: %s", errs.ErrCorrupt, fmt.Sprintf(format, a...))
}

// OpenSegment opens the encoded segment b. The caller must not change b afterwards.
func OpenSegment(b []byte) (*Segment, error) {
	le := binary.LittleEndian
	if len(b) < headerBytes+16 || string(b[:8]) != magic {
		return nil, broken("not a word segment")
	}
	f := le.Uint32(b[8:])
	if f < 1 || f > format {
		return nil, fmt.Errorf("%w: word segment has format %d, this program reads up to %d", errs.ErrNewerFormat, f, format)
	}
	head, has := headerBytes, sections
	if f < build.Sparse {
		head, has = oldHeader, oldSections
	}
	s := &Segment{
		b: b, Rows: int(le.Uint32(b[12:])), Print: le.Uint64(b[16:]), Total: le.Uint64(b[24:]),
		Sessions: int(le.Uint32(b[32:])), terms: int(le.Uint32(b[36:])),
		Sorted: f >= build.Sparse, Format: f,
	}
	for i := range has + 1 {
		v := le.Uint64(b[40+8*i:])
		if v > uint64(len(b)) || v%8 != 0 || i == 0 && v != uint64(head) || i > 0 && int(v) < s.at[i-1] {
			return nil, broken("impossible offset of section %d: %d", i, v)
		}
		s.at[i] = int(v)
	}
	for i := has + 1; i < len(s.at); i++ {
		s.at[i] = s.at[has]
	}
	s.end = s.at[sections]
	blocks := (s.end + blockBytes - 1) / blockBytes
	if len(b) != s.end+8*blocks+8 {
		return nil, broken("word segment has %d bytes, its header requires %d", len(b), s.end+8*blocks+8)
	}
	if build.SumOf(b[s.end:len(b)-8], uint64(s.end)) != le.Uint64(b[len(b)-8:]) {
		return nil, broken("checksum mismatch in the list of checksums")
	}
	s.checked = make([]atomic.Bool, blocks)
	if err := s.check(0, head); err != nil {
		return nil, err
	}
	for _, f := range []struct{ section, n, width int }{
		{secLSN, s.Rows, 8}, {secTime, s.Rows, 8}, {secLength, s.Rows, 4}, {secSession, s.Rows, 4}, {secIDEnd, s.Rows, 4},
		{secHashes, s.Rows, 8}, {secHashRow, s.Rows, 4},
		{secNameEnd, s.Sessions, 4}, {secFirstRow, s.Sessions, 4}, {secBlockAt, (s.terms + termBlock - 1) / termBlock, 4},
		{secCreated, s.sorted(), 8}, {secUpdated, s.sorted(), 8}, {secExpires, s.sorted(), 8}, {secScore, s.sorted(), 8},
		{secSize, s.sorted(), 4},
		{secByTime, s.sorted(), 4}, {secByTime + 1, s.sorted(), 4}, {secByTime + 2, s.sorted(), 4},
		{secByTime + 3, s.sorted(), 4}, {secByTime + 4, s.sorted(), 4},
	} {
		if have := s.at[f.section+1] - s.at[f.section]; have != (f.n*f.width+7)&^7 {
			return nil, broken("section %d has %d bytes, but must have %d entries of %d bytes", f.section, have,
				f.n, f.width)
		}
	}
	if s.Rows == 0 || s.Sessions == 0 || s.Sessions > s.Rows {
		return nil, broken("impossible numbers of rows, %d, and sessions, %d", s.Rows, s.Sessions)
	}
	return s, nil
}

// sorted returns the number of entries in each section for sort keys, times of expiry and sort orders: one for each
// row, or 0 if the segment has format 1, which lacks these sections.
func (s *Segment) sorted() int {
	if s.Sorted {
		return s.Rows
	}
	return 0
}

// Size returns the size of the segment in bytes.
func (s *Segment) Size() int { return len(s.b) }

// Bytes returns the bytes of the segment.
func (s *Segment) Bytes() []byte { return s.b }

// Sum returns a checksum of the whole segment, which identifies it.
func (s *Segment) Sum() uint64 { return binary.LittleEndian.Uint64(s.b[len(s.b)-8:]) }

// check verifies the checksums of the blocks that contain b[from:to].
func (s *Segment) check(from, to int) error {
	for i := from / blockBytes; i*blockBytes < to; i++ {
		if s.checked[i].Load() {
			continue
		}
		at := i * blockBytes
		if xxhash.Sum64(s.b[at:min(at+blockBytes, s.end)]) != binary.LittleEndian.Uint64(s.b[s.end+8*i:]) {
			return broken("checksum mismatch in the block at byte %d", at)
		}
		s.checked[i].Store(true)
	}
	return nil
}

// Check verifies the checksums of all blocks.
func (s *Segment) Check() error { return s.check(0, s.end) }

// section returns the bytes of section i after verifying all of it.
func (s *Segment) section(i int) ([]byte, error) {
	b := s.b[s.at[i]:s.at[i+1]]
	if s.whole[i].Load() {
		return b, nil
	}
	if err := s.check(s.at[i], s.at[i+1]); err != nil {
		return nil, err
	}
	s.whole[i].Store(true)
	return b, nil
}

// column32 and column64 return entry i of the section sec, which is a column of numbers of 32 or 64 bits. They verify
// only the blocks that contain the entry.
func (s *Segment) column32(sec, i int) (uint32, error) {
	at := s.at[sec] + 4*i
	if err := s.check(at, at+4); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(s.b[at:]), nil
}

func (s *Segment) column64(sec, i int) (uint64, error) {
	at := s.at[sec] + 8*i
	if err := s.check(at, at+8); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(s.b[at:]), nil
}

// spanOf returns byte string i of section sec. Entry i of the section ends is the offset in sec at which this string
// ends.
func (s *Segment) spanOf(ends, sec, i int) ([]byte, error) {
	from, err := uint32(0), error(nil)
	if i > 0 {
		from, err = s.column32(ends, i-1)
	}
	var to uint32
	if err == nil {
		to, err = s.column32(ends, i)
	}
	if err != nil {
		return nil, err
	}
	if from > to || int64(to) > int64(s.at[sec+1]-s.at[sec]) {
		return nil, broken("entry %d of section %d has impossible bounds: %d to %d", i, sec, from, to)
	}
	a, b := s.at[sec]+int(from), s.at[sec]+int(to)
	if err := s.check(a, b); err != nil {
		return nil, err
	}
	return s.b[a:b:b], nil
}

// ID returns the id of the document in row r. The result is a part of the segment's bytes, and must not be changed.
func (s *Segment) ID(r uint32) ([]byte, error) { return s.spanOf(secIDEnd, secIDs, int(r)) }

// LSN returns the version of the document in row r.
func (s *Segment) LSN(r uint32) (uint64, error) { return s.column64(secLSN, int(r)) }

// Time returns the time at which the document of a row happened, in microseconds since 1970.
func (s *Segment) Time(r uint32) (int64, error) {
	v, err := s.column64(secTime, int(r))
	return int64(v), err
}

// Session returns the number of a row's session.
func (s *Segment) Session(r uint32) (uint32, error) {
	n, err := s.column32(secSession, int(r))
	if err == nil && int(n) >= s.Sessions {
		err = broken("row %d names session %d, but the segment has %d sessions", r, n, s.Sessions)
	}
	return n, err
}

// SessionName returns the name of session n.
func (s *Segment) SessionName(n uint32) ([]byte, error) {
	return s.spanOf(secNameEnd, secNames, int(n))
}

// RowsOf returns the range of the rows of session n: from ≤ row < to.
func (s *Segment) RowsOf(n uint32) (from, to uint32, err error) {
	from, err = s.column32(secFirstRow, int(n))
	if err != nil {
		return 0, 0, err
	}
	to = uint32(s.Rows)
	if int(n)+1 < s.Sessions {
		if to, err = s.column32(secFirstRow, int(n)+1); err != nil {
			return 0, 0, err
		}
	}
	if from >= to || int(to) > s.Rows {
		return 0, 0, broken("session %d has impossible rows: %d to %d", n, from, to)
	}
	return from, to, nil
}

// FindSession returns the number of a session by name, and reports whether the segment has the session.
func (s *Segment) FindSession(name string) (n uint32, ok bool, err error) {
	i := sort.Search(s.Sessions, func(i int) bool {
		b, e := s.SessionName(uint32(i))
		if e != nil && err == nil {
			err = e
		}
		return e != nil || string(b) >= name
	})
	if err != nil || i == s.Sessions {
		return 0, false, err
	}
	b, err := s.SessionName(uint32(i))
	return uint32(i), err == nil && string(b) == name, err
}

// before reports whether row r precedes a row with the given time and id in the order of a session: first by time,
// then by id.
func (s *Segment) before(r uint32, time int64, id string) (bool, error) {
	t, err := s.Time(r)
	if err != nil || t != time {
		return t < time, err
	}
	b, err := s.ID(r)
	return string(b) < id, err
}

// behind returns the first row in the range from ≤ row < end that does not precede a row with the given time and id
// (see before), or end if all rows of the range precede it. The rows of the range must belong to one session.
func (s *Segment) behind(from, end uint32, time int64, id string) (r uint32, err error) {
	n := sort.Search(int(end-from), func(i int) bool {
		is, e := s.before(from+uint32(i), time, id)
		if e != nil && err == nil {
			err = e
		}
		return e != nil || !is
	})
	return from + uint32(n), err
}
