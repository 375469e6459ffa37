package memstore

import (
	"crypto/rand"
	"io"
	"time"

	"github.com/google/uuid"
)

// NewID returns a UUIDv7 (RFC 9562) for the time now. Ids of different microseconds sort by time, almost exactly: the
// field rand_a has the fraction of the millisecond (method 3 of the RFC). uuid.NewV7 is not used because it reads the
// clock and a global state.
func NewID(now time.Time, random io.Reader) (string, error) {
	if random == nil {
		random = rand.Reader
	}
	var u uuid.UUID
	if _, err := io.ReadFull(random, u[8:]); err != nil {
		return "", err
	}
	ms := now.UnixMilli()
	fraction := uint16(now.Sub(time.UnixMilli(ms)) * 4096 / time.Millisecond)
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = 0x70 | byte(fraction>>8)&0x0f
	u[7] = byte(fraction)
	u[8] = 0x80 | u[8]&0x3f
	return u.String(), nil
}
