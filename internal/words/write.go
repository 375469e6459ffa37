package words

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/words/order"
)

// The sections of a segment, in their order.
const (
	secLSN = iota
	secTime
	secLength
	secSession
	secIDEnd
	secIDs
	secHashes
	secHashRow
	secNameEnd
	secNames
	secFirstRow
	secBlockAt
	secDictionary
	secPostings
	oldSections // of format 1

	secCreated = iota - 1
	secUpdated
	secExpires
	secScore
	secSize
	secByTime // the first of the orders

	sections = secByTime + order.Orders
)

const (
	magic       = "varvewrd"
	format      = 2
	headerBytes = 40 + 8*32
	oldHeader   = 40 + 8*16 // of format 1
	blockBytes  = 64 << 10  // that have one checksum
	termBlock   = 16        // terms that share an offset
	groupLen    = 128       // postings that may be skipped together
)

// row is a document on its way into a segment.
type row struct {
	id, session string
	lsn         uint64
	time        int64
	length      uint32
	order.Line
}

func compareRows(a, b *row) int {
	if c := cmp.Compare(a.session, b.session); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.id, b.id))
}

// posting says that a row has a term: how often in which fields, encoded; nil: once in the content.
type posting struct {
	row uint32
	tf  []byte
}

// segmentWriter encodes a segment. Rows come sorted, and then the terms.
type segmentWriter struct {
	parts [sections][]byte
	rows  int
	total uint64 // of the lengths
	names uint32
	terms uint32
	last  []byte // the term before
	print uint64
	group []byte
}

func newSegmentWriter(rows []row, print uint64) *segmentWriter {
	w := &segmentWriter{rows: len(rows), print: print}
	le := binary.LittleEndian
	p := &w.parts
	type hashed struct {
		hash uint64
		row  uint32
	}
	hashes := make([]hashed, len(rows))
	for i := range rows {
		r := &rows[i]
		if i == 0 || rows[i-1].session != r.session {
			p[secNames] = append(p[secNames], r.session...)
			p[secNameEnd] = le.AppendUint32(p[secNameEnd], uint32(len(p[secNames])))
			p[secFirstRow] = le.AppendUint32(p[secFirstRow], uint32(i))
			w.names++
		}
		p[secLSN] = le.AppendUint64(p[secLSN], r.lsn)
		p[secTime] = le.AppendUint64(p[secTime], uint64(r.time))
		p[secLength] = le.AppendUint32(p[secLength], r.length)
		p[secSession] = le.AppendUint32(p[secSession], w.names-1)
		p[secIDs] = append(p[secIDs], r.id...)
		p[secIDEnd] = le.AppendUint32(p[secIDEnd], uint32(len(p[secIDs])))
		p[secCreated] = le.AppendUint64(p[secCreated], uint64(r.Created))
		p[secUpdated] = le.AppendUint64(p[secUpdated], uint64(r.Updated))
		p[secExpires] = le.AppendUint64(p[secExpires], uint64(r.Expires))
		p[secScore] = le.AppendUint64(p[secScore], uint64(order.ScoreKey(r.Score)))
		p[secSize] = le.AppendUint32(p[secSize], r.Size)
		hashes[i] = hashed{xxhash.Sum64String(r.id), uint32(i)}
		w.total += uint64(r.length)
	}
	slices.SortFunc(hashes, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.row, b.row)) })
	for _, h := range hashes {
		p[secHashes] = le.AppendUint64(p[secHashes], h.hash)
		p[secHashRow] = le.AppendUint32(p[secHashRow], h.row)
	}
	for o := order.ByTime; o <= order.BySize; o++ {
		p[secByTime+int(o)-1] = order.Sorted(len(rows), func(i int) order.Place { return order.Place{Key: rows[i].Key(o, rows[i].time), ID: rows[i].id} })
	}
	return w
}

// term adds one with its postings, which are sorted by row. Terms come sorted.
func (w *segmentWriter) term(term []byte, list []posting) {
	p := &w.parts
	before := len(p[secPostings])
	if w.terms%termBlock == 0 {
		p[secBlockAt] = binary.LittleEndian.AppendUint32(p[secBlockAt], uint32(len(p[secDictionary])))
		p[secDictionary] = binary.AppendUvarint(p[secDictionary], uint64(before))
		w.last = w.last[:0]
	}
	w.terms++
	p[secPostings] = w.postings(p[secPostings], list)
	shared := 0
	for shared < len(w.last) && shared < len(term) && w.last[shared] == term[shared] {
		shared++
	}
	d := binary.AppendUvarint(p[secDictionary], uint64(shared))
	d = binary.AppendUvarint(d, uint64(len(term)-shared))
	d = append(d, term[shared:]...)
	d = binary.AppendUvarint(d, uint64(len(list)))
	p[secDictionary] = binary.AppendUvarint(d, uint64(len(p[secPostings])-before))
	w.last = append(w.last[:0], term...)
}

func (w *segmentWriter) postings(dst []byte, list []posting) []byte {
	last, lastOfGroup := int64(-1), int64(-1)
	for len(list) > 0 {
		n := min(groupLen, len(list))
		w.group = w.group[:0]
		for i := range list[:n] {
			e := &list[i]
			delta := uint64(int64(e.row)-last) << 1
			last = int64(e.row)
			if e.tf == nil {
				w.group = binary.AppendUvarint(w.group, delta|1)
			} else {
				w.group = append(binary.AppendUvarint(w.group, delta), e.tf...)
			}
		}
		dst = binary.AppendUvarint(dst, uint64(last-lastOfGroup))
		dst = binary.AppendUvarint(dst, uint64(len(w.group)))
		dst = append(dst, w.group...)
		lastOfGroup = last
		list = list[n:]
	}
	return dst
}

// finish is the segment.
func (w *segmentWriter) finish() []byte {
	size := headerBytes
	for _, p := range w.parts {
		size += (len(p) + 7) &^ 7
	}
	blocks := (size + blockBytes - 1) / blockBytes
	out := make([]byte, headerBytes, size+8*blocks+8)
	le := binary.LittleEndian
	copy(out, magic)
	le.PutUint32(out[8:], format)
	le.PutUint32(out[12:], uint32(w.rows))
	le.PutUint64(out[16:], w.print)
	le.PutUint64(out[24:], w.total)
	le.PutUint32(out[32:], w.names)
	le.PutUint32(out[36:], w.terms)
	for i, p := range w.parts {
		le.PutUint64(out[40+8*i:], uint64(len(out)))
		out = append(out, p...)
		for len(out)%8 != 0 {
			out = append(out, 0)
		}
	}
	end := uint64(len(out))
	le.PutUint64(out[40+8*sections:], end)
	return sealed(out)
}

// sealed adds the checksums.
func sealed(out []byte) []byte {
	end := len(out)
	for at := 0; at < end; at += blockBytes {
		out = binary.LittleEndian.AppendUint64(out, xxhash.Sum64(out[at:min(at+blockBytes, end)]))
	}
	return binary.LittleEndian.AppendUint64(out, sumOf(out[end:], uint64(end)))
}

func sumOf(b []byte, seed uint64) uint64 {
	d := xxhash.NewWithSeed(seed)
	_, _ = d.Write(b)
	return d.Sum64()
}
