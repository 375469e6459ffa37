package past

import (
	"context"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// Began returns the time at which the first frame of a segment was written.
func (p *Log) Began(number uint64) (time.Time, error) {
	_, h, err := p.Start(number)
	if err == nil && (h.Time <= 0 || h.Time > MostTime) {
		err = fmt.Errorf("the start of segment %d does not have a valid time: %w", number, errs.ErrCorrupt)
	}
	return time.UnixMicro(h.Time).UTC(), err
}

// FirstReading returns the clock reading that the first entry of a segment records. If this reading cannot be read,
// FirstReading returns the time that was passed as otherwise.
func (p *Log) FirstReading(number uint64, otherwise time.Time) time.Time {
	_, h, err := p.Start(number)
	if err != nil {
		return otherwise
	}
	_ = p.walk(context.Background(), Mark{h.End(), h.Sum}, p.Geometry.End(number),
		func(h *segment.Header, payload []byte, err error) bool {
			if err != nil || h.Kind < KindUser {
				return err == nil
			}
			_, _, f := h.Split(payload)
			otherwise = time.UnixMicro(f.Reading).UTC()
			return false
		})
	return otherwise
}
