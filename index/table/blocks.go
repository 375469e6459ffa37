package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

var (
	errBlock = errors.New("checksum mismatch in a block")
	errLine  = errors.New("not a table line")
)

// touch verifies block b of the table file against its checksum, unless this open table has verified it
// before.
func (t *Table) touch(b int) error {
	bit := uint64(1) << (b & 63)
	if t.seen[b>>6].Load()&bit != 0 {
		return nil
	}
	if err := t.verifyBlock(b); err != nil {
		return err
	}
	t.seen[b>>6].Or(bit)
	return nil
}

// verifyBlock verifies block b of the table file against its checksum.
func (t *Table) verifyBlock(b int) error {
	lo := b * blockSize
	hi := min(lo+blockSize, t.body)
	want, ok := parseHash(t.blocks[b*hashWidth:])
	if !ok || xxhash.Sum64(t.data[lo:hi]) != want {
		return t.damaged(int64(lo), errBlock)
	}
	return nil
}

// line returns the bounds of the line that contains the byte at offset off: start ≤ off < end. lo and hi must be
// bounds of whole lines, with lo ≤ off < hi. If line returns no error, all blocks of the line are verified.
func (t *Table) line(off, lo, hi int) (start, end int, err error) {
	b := off / blockSize
	if err = t.touch(b); err != nil {
		return 0, 0, err
	}
	for start = off; ; b-- {
		from := max(lo, b*blockSize)
		if i := lastNewline(t.data[from:start]); i >= 0 {
			start = from + i + 1
			break
		}
		if start = from; start == lo {
			break
		}
		if err = t.touch(b - 1); err != nil {
			return 0, 0, err
		}
	}
	end, err = t.lineEnd(start, off, hi)
	return start, end, err
}

// lineEnd returns the end of the line that begins at start, after its newline. The caller knows that [start,
// from) has no newline. A line shorter than `"":0` is damage.
func (t *Table) lineEnd(start, from, hi int) (int, error) {
	for b := from / blockSize; from < hi; b++ {
		if err := t.touch(b); err != nil {
			return 0, err
		}
		to := min(hi, (b+1)*blockSize)
		if i := bytes.IndexByte(t.data[from:to], '\n'); i >= 0 {
			end := from + i + 1
			if end-start < minLine || t.data[start] != '"' {
				return 0, t.damaged(int64(start), errLine)
			}
			return end, nil
		}
		from = to
	}
	return 0, t.damaged(int64(start), errLine)
}

// lastNewline is like bytes.LastIndexByte(b, '\n'), and examines eight bytes at a time.
func lastNewline(b []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	n := len(b)
	for n >= 8 {
		x := binary.LittleEndian.Uint64(b[n-8:]) ^ ones*'\n'
		// The usual form (x-ones)&^x&tops is exact for the highest zero byte only if lower bytes do not borrow; this
		// form never borrows.
		if z := ^((x&^uint64(tops) + ^uint64(tops)) | x) & tops; z != 0 {
			return n - 1 - bits.LeadingZeros64(z)>>3
		}
		n -= 8
	}
	for n--; n >= 0 && b[n] != '\n'; n-- {
	}
	return n
}
