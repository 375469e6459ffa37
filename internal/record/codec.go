package record

import (
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Codec encodes and decodes the records in log entries. The zero value is ready; it may be used by several
// goroutines.
type Codec struct {
	enc, dec sync.Pool
	most     int // maximum size of an inflated document in bytes, 0: only the caller's limit
	room     room
}

// Bound sets the maximum size in bytes of a document after it is inflated: the size that a frame of the log can have
// after inflating (segment.Geometry.Limit). No version of this program writes larger documents, so an entry with a
// larger size is forged. Call Bound before the Codec is used.
func (c *Codec) Bound(limit uint64) { c.most = int(min(limit, math.MaxInt32)) }

func (c *Codec) compress(dst, doc []byte) []byte {
	e, _ := c.enc.Get().(*zstd.Encoder)
	if e == nil {
		var err error
		e, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil { // only wrong options fail
			return append(dst, doc...)
		}
	}
	defer c.enc.Put(e)
	return e.EncodeAll(doc, dst)
}

// inflate decompresses the document doc into dst, which is empty and has room for size bytes.
func (c *Codec) inflate(dst, doc []byte, size int) ([]byte, error) {
	d, _ := c.dec.Get().(*zstd.Decoder)
	if d == nil {
		var err error
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return nil, fmt.Errorf("inflating a document: %w", err)
		}
	}
	defer c.dec.Put(d)
	var h zstd.Header
	if err := h.Decode(doc); err != nil || !h.HasFCS || h.FrameContentSize != uint64(size) {
		return nil, fmt.Errorf("%w: the compressed document has another size than recorded", errRecord)
	}
	out, err := d.DecodeAll(doc, dst)
	if err != nil || len(out) != size {
		return nil, fmt.Errorf("%w: inflating a document: %w", errRecord, err)
	}
	return out, nil
}
