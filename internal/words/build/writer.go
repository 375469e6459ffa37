package build

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/internal/yield"
)

// Row is a document to be written into a segment.
type Row struct {
	ID, Session string
	LSN         uint64
	Time        int64
	Length      uint32
	order.Line
}

// Compare compares rows by the order of a segment: session, time, id.
func (r *Row) Compare(o *Row) int {
	if c := strings.Compare(r.Session, o.Session); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(r.Time, o.Time), strings.Compare(r.ID, o.ID))
}

// Posting records that a row has a term. TF has the encoded counts per field; nil means that the term occurs once, in
// the content.
type Posting struct {
	Row uint32
	TF  []byte
}

// Writer encodes a segment. The caller adds the sorted rows, then the sorted terms.
type Writer struct {
	ctx      context.Context
	parts    [Sections][]byte
	postings pieces // section of the postings; the element of parts for it stays empty
	count    int    // total number of rows that the segment will have
	rows     int    // number of rows added so far
	session  string // session of the last row added
	total    uint64 // sum of the lengths of the rows in words
	names    uint32
	terms    uint32
	last     []byte // last term added
	print    uint64
	format   uint32
	group    []byte
	list     []byte
	steps    int
	turns    yield.Turns
}

// NewWriter returns a writer for a segment with the given number of rows. print is the fingerprint of the analyzer of
// the terms. format is the format of the segment: Sparse or later. After ctx has ended, the writer may omit the
// sections whose order is not that of the rows: the caller must then not write the segment.
func NewWriter(ctx context.Context, rows int, print uint64, format uint32) *Writer {
	w := &Writer{ctx: ctx, count: rows, print: print, format: format}
	for _, c := range columns {
		w.parts[c.section] = make([]byte, 0, c.width*rows)
	}
	return w
}

// columns lists the sections that have one entry per row, with the width of an entry in bytes.
var columns = []struct{ section, width int }{
	{SecLSN, 8}, {SecTime, 8}, {SecLength, 4}, {SecSession, 4}, {SecIDEnd, 4}, {SecHashes, 8}, {SecHashRow, 4},
	{SecCreated, 8}, {SecUpdated, 8}, {SecExpires, 8}, {SecScore, 8}, {SecSize, 4},
}

// Row adds the next row.
func (w *Writer) Row(r *Row) {
	if w.rows%16 == 0 {
		w.turns.Give() // as in Builder.Add
	}
	le, p := binary.LittleEndian, &w.parts
	if w.rows == 0 || w.session != r.Session {
		p[SecNames] = append(p[SecNames], r.Session...)
		p[SecNameEnd] = le.AppendUint32(p[SecNameEnd], uint32(len(p[SecNames])))
		p[SecFirstRow] = le.AppendUint32(p[SecFirstRow], uint32(w.rows))
		w.names++
		w.session = r.Session
	}
	p[SecLSN] = le.AppendUint64(p[SecLSN], r.LSN)
	p[SecTime] = le.AppendUint64(p[SecTime], uint64(r.Time))
	p[SecLength] = le.AppendUint32(p[SecLength], r.Length)
	p[SecSession] = le.AppendUint32(p[SecSession], w.names-1)
	p[SecIDs] = append(p[SecIDs], r.ID...)
	p[SecIDEnd] = le.AppendUint32(p[SecIDEnd], uint32(len(p[SecIDs])))
	p[SecCreated] = le.AppendUint64(p[SecCreated], uint64(r.Created))
	p[SecUpdated] = le.AppendUint64(p[SecUpdated], uint64(r.Updated))
	p[SecExpires] = le.AppendUint64(p[SecExpires], uint64(r.Expires))
	p[SecScore] = le.AppendUint64(p[SecScore], uint64(order.ScoreKey(r.Score)))
	p[SecSize] = le.AppendUint32(p[SecSize], r.Size)
	w.total += uint64(r.Length)
	if w.rows++; w.rows == w.count {
		w.sort()
	}
}

// sort makes the sections that are not in the order of the rows: the hashes of the ids, and the row numbers in each
// sort order. Row calls it after the last row.
func (w *Writer) sort() {
	le, p := binary.LittleEndian, &w.parts
	ids := string(p[SecIDs]) // one string for all ids
	id := func(i int) string {
		from := uint32(0)
		if i > 0 {
			from = le.Uint32(p[SecIDEnd][4*(i-1):])
		}
		return ids[from:le.Uint32(p[SecIDEnd][4*i:])]
	}
	type hashed struct {
		hash uint64
		row  uint32
	}
	hashes := make([]hashed, w.rows)
	for i := range hashes {
		w.step()
		hashes[i] = hashed{xxhash.Sum64String(id(i)), uint32(i)}
	}
	slices.SortFunc(hashes, func(a, b hashed) int {
		w.step()
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.row, b.row))
	})
	for _, h := range hashes {
		w.step()
		p[SecHashes] = le.AppendUint64(p[SecHashes], h.hash)
		p[SecHashRow] = le.AppendUint32(p[SecHashRow], h.row)
	}
	for o := order.ByTime; o <= order.BySize && w.ctx.Err() == nil; o++ {
		key := func(i int) int64 { return int64(le.Uint32(p[SecSize][4*i:])) }
		if o != order.BySize {
			column := p[[...]int{order.ByTime: SecTime, order.ByCreated: SecCreated, order.ByUpdated: SecUpdated,
				order.ByScore: SecScore}[o]]
			key = func(i int) int64 { return int64(le.Uint64(column[8*i:])) }
		}
		p[SecByTime+int(o)-1] = order.Sorted(w.rows, func(i int) order.Place { return order.Place{Key: key(i), ID: id(i)} },
			w.step)
	}
}

// step lets other goroutines run now and then. It is called for each row and each comparison.
func (w *Writer) step() {
	if w.steps++; w.steps%1024 == 0 {
		w.turns.Give()
	}
}

// Term adds the next term with its postings. The terms must be added in ascending order of their bytes, and list must
// be sorted by row.
func (w *Writer) Term(term []byte, list []Posting) {
	p := &w.parts
	if w.terms%TermBlock == 0 {
		p[SecBlockAt] = binary.LittleEndian.AppendUint32(p[SecBlockAt], uint32(len(p[SecDictionary])))
		p[SecDictionary] = binary.AppendUvarint(p[SecDictionary], uint64(w.postings.size))
		w.last = w.last[:0]
	}
	if w.terms++; w.terms%16 == 0 {
		w.turns.Give()
	}
	w.encode(list)
	w.postings.add(w.list)
	shared := 0
	for shared < len(w.last) && shared < len(term) && w.last[shared] == term[shared] {
		shared++
	}
	d := binary.AppendUvarint(p[SecDictionary], uint64(shared))
	d = binary.AppendUvarint(d, uint64(len(term)-shared))
	d = append(d, term[shared:]...)
	d = binary.AppendUvarint(d, uint64(len(list)))
	p[SecDictionary] = binary.AppendUvarint(d, uint64(len(w.list)))
	w.last = append(w.last[:0], term...)
}

// encode encodes the postings of a term into w.list.
func (w *Writer) encode(list []Posting) {
	w.list = w.list[:0]
	last, lastOfGroup := int64(-1), int64(-1)
	for len(list) > 0 {
		n := min(GroupLen, len(list))
		w.group = w.group[:0]
		plain := w.format > Sparse
		for i := range list[:n] {
			e := &list[i]
			delta := uint64(int64(e.Row)-last) << 1
			last = int64(e.Row)
			if e.TF == nil {
				w.group = binary.AppendUvarint(w.group, delta|1)
			} else {
				w.group = append(binary.AppendUvarint(w.group, delta), e.TF...)
				plain = false
			}
		}
		span := int(last - lastOfGroup)
		w.list = binary.AppendUvarint(w.list, uint64(span))
		if bits := (span + 7) / 8; plain && bits < len(w.group) {
			w.list = append(w.list, 0)
			at := len(w.list)
			w.list = append(w.list, make([]byte, bits)...)
			for _, e := range list[:n] {
				i := int(int64(e.Row) - lastOfGroup - 1)
				w.list[at+i/8] |= 1 << (i % 8)
			}
		} else {
			w.list = binary.AppendUvarint(w.list, uint64(len(w.group)))
			w.list = append(w.list, w.group...)
		}
		lastOfGroup = last
		list = list[n:]
	}
}

// pieces is a growing sequence of bytes. Bytes that were added are never copied again.
type pieces struct {
	list [][]byte
	size int
}

const pieceBytes = 1 << 20

func (p *pieces) add(b []byte) {
	p.size += len(b)
	for len(b) > 0 {
		n := len(p.list)
		if n == 0 || len(p.list[n-1]) == cap(p.list[n-1]) {
			p.list = append(p.list, make([]byte, 0, min(pieceBytes, max(p.size, 512))))
			n++
		}
		last := p.list[n-1]
		k := min(len(b), cap(last)-len(last))
		p.list[n-1] = append(last, b[:k]...)
		b = b[k:]
	}
}

// Bytes returns the segment, or nil if w is nil.
func (w *Writer) Bytes() []byte {
	if w == nil {
		return nil
	}
	size := w.size()
	out := make([]byte, 0, size+8*((size+BlockBytes-1)/BlockBytes)+8)
	_ = w.Write(func(b []byte) error { out = append(out, b...); return nil })
	return out
}

// size returns the size of the segment without its checksums, in bytes.
func (w *Writer) size() int {
	size := HeaderBytes + (w.postings.size+7)&^7
	for _, p := range w.parts {
		size += (len(p) + 7) &^ 7
	}
	return size
}

// Write passes the bytes of the segment to give, part by part. It returns the first error of give.
func (w *Writer) Write(give func(b []byte) error) error {
	le := binary.LittleEndian
	head := make([]byte, HeaderBytes)
	copy(head, Magic)
	le.PutUint32(head[8:], w.format)
	le.PutUint32(head[12:], uint32(w.rows))
	le.PutUint64(head[16:], w.print)
	le.PutUint64(head[24:], w.total)
	le.PutUint32(head[32:], w.names)
	le.PutUint32(head[36:], w.terms)
	at := HeaderBytes
	for i := range w.parts {
		le.PutUint64(head[40+8*i:], uint64(at))
		n := len(w.parts[i])
		if i == SecPostings {
			n = w.postings.size
		}
		at += (n + 7) &^ 7
	}
	le.PutUint64(head[40+8*Sections:], uint64(at))
	s := sums{give: give}
	err := s.write(head)
	for i, p := range w.parts {
		list, n := [][]byte{p}, len(p)
		if i == SecPostings {
			list, n = w.postings.list, w.postings.size
		}
		for _, b := range list {
			if err == nil {
				err = s.write(b)
			}
		}
		if pad := -n & 7; pad > 0 && err == nil {
			err = s.write(make([]byte, pad))
		}
	}
	if err != nil {
		return err
	}
	return s.finish()
}

// sums passes bytes on to the function give, and computes the checksums of their blocks.
type sums struct {
	give  func(b []byte) error
	block xxhash.Digest // digest of the current block
	end   int
	list  []byte
}

func (s *sums) write(b []byte) error {
	for rest := b; len(rest) > 0; {
		if s.end%BlockBytes == 0 {
			s.close()
			s.block.Reset()
		}
		n := min(len(rest), BlockBytes-s.end%BlockBytes)
		_, _ = s.block.Write(rest[:n])
		s.end += n
		rest = rest[n:]
	}
	return s.give(b)
}

func (s *sums) close() {
	if s.end > 0 {
		s.list = binary.LittleEndian.AppendUint64(s.list, s.block.Sum64())
	}
}

func (s *sums) finish() error {
	s.close()
	return s.give(binary.LittleEndian.AppendUint64(s.list, SumOf(s.list, uint64(s.end))))
}

// Sealed returns b followed by its checksums.
func Sealed(b []byte) []byte {
	var out []byte
	s := sums{give: func(b []byte) error { out = append(out, b...); return nil }}
	_ = s.write(b)
	_ = s.finish()
	return out
}

// SumOf returns the xxhash64 of b with a seed.
func SumOf(b []byte, seed uint64) uint64 {
	d := xxhash.NewWithSeed(seed)
	_, _ = d.Write(b)
	return d.Sum64()
}
