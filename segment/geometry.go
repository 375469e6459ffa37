package segment

import (
	"fmt"
	"strconv"
	"strings"
)

// The default, minimum and maximum size of a segment, in bytes.
const (
	DefaultSize = 64 << 20
	MinSize     = 64 << 10
	MaxSize     = 1 << 30
)

// MaxNumber is the highest number of a segment. With the largest segment size all positions are below 2⁶², so
// additions to a position never overflow.
const MaxNumber = 1<<32 - 1

// LSN is a position in the log; see the package comment.
type LSN = uint64

// Geometry is the segment size of a log and the seed of its checksums; it maps positions to segments and
// offsets.
type Geometry struct {
	UUID [16]byte
	Size uint64
}

// Valid reports whether a log can have this geometry. A geometry that was read from a file must be
// checked before use, because positions are divided by its size.
func (g Geometry) Valid() bool {
	return g.Size >= MinSize && g.Size <= MaxSize && g.Size%4096 == 0
}

// Holds reports whether a frame may begin or end at position pos.
func (g Geometry) Holds(pos LSN) bool {
	return pos%8 == 0 && pos >= g.Size && g.Number(pos-1) <= MaxNumber
}

// Number returns the number of the segment that contains position pos.
func (g Geometry) Number(pos LSN) uint64 { return pos / g.Size }

// Offset returns the offset of position pos in the file of its segment.
func (g Geometry) Offset(pos LSN) int64 { return int64(pos % g.Size) }

// Start returns the first position of a segment.
func (g Geometry) Start(number uint64) LSN { return number * g.Size }

// End returns the position after the end of a segment.
func (g Geometry) End(number uint64) LSN { return (number + 1) * g.Size }

// Limit returns the maximum size of a payload in bytes: with all overhead a batch takes at most half a segment.
func (g Geometry) Limit() uint64 { return g.Size / 2 }

// Name returns the file name of a segment.
func Name(number uint64) string { return fmt.Sprintf("%08d.wal", number) }

// ParseName returns the number of the segment that has this file name, and false if name is not the name of a
// segment.
func ParseName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".wal")
	if !ok || len(digits) < 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && n <= MaxNumber && Name(n) == name
}
