package record

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Codec encodes and decodes records. The zero value is ready; it may be used by
// several goroutines.
type Codec struct {
	enc, dec sync.Pool
}

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

func (c *Codec) inflate(doc []byte, size int) ([]byte, error) {
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
		return nil, fmt.Errorf("%w: compressed document does not have the size that it says", errRecord)
	}
	out, err := d.DecodeAll(doc, make([]byte, 0, size))
	if err != nil || len(out) != size {
		return nil, fmt.Errorf("%w: inflating a document: %w", errRecord, err)
	}
	return out, nil
}
