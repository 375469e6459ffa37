package remotetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Log is a test log of real frames, divided into pieces.
type Log struct {
	Geometry segment.Geometry
	Start    past.Mark // mark at which the first piece begins
	End      past.Mark
	Pieces   []remote.Piece

	rng  *rand.Rand
	time int64
}

// NewLog returns a log without pieces. Logs of different seeds get different frames.
func NewLog(seed uint64) *Log {
	l := &Log{Geometry: segment.Geometry{UUID: [16]byte{1, 2, 3}, Size: segment.MinSize}, time: 1,
		rng: rand.New(rand.NewPCG(seed, 1))}
	l.Start = past.Mark{LSN: l.Geometry.Start(1)}
	l.End = l.Start
	return l
}

// Fork returns a log that has the same pieces as this log so far. Pieces that are added later differ between the two
// logs.
func (l *Log) Fork(seed uint64) *Log {
	fork := *l
	fork.Pieces = append([]remote.Piece(nil), l.Pieces...)
	fork.rng = rand.New(rand.NewPCG(seed, 1))
	return &fork
}

// Grow adds pieces of an epoch to the log, and returns the log. Each piece has one to three batches of one to three
// frames.
func (l *Log) Grow(pieces int, epoch uint64) *Log {
	for range pieces {
		l.piece(epoch)
	}
	return l
}

func (l *Log) piece(epoch uint64) {
	p := remote.Piece{From: l.End, Epoch: epoch, Machine: uuid.UUID{9}, Format: remote.Format,
		Time: time.UnixMicro(l.time).UTC()}
	_, _ = l.rng.Uint64(), copy(p.Request[:], fmt.Sprintf("%016x", l.rng.Uint64()))
	geo := l.Geometry
	if end := geo.End(geo.Number(l.End.LSN)); geo.Offset(l.End.LSN) == 0 || end-l.End.LSN < 16<<10 {
		s := segment.Start{Geometry: geo, Number: geo.Number(l.End.LSN)}
		if l.End.Sum != 0 {
			s.Number, s.PrevEnd, s.PrevSum = geo.Number(l.End.LSN-1)+1, l.End.LSN, l.End.Sum
		}
		h := segment.Header{Time: l.time, Nonce: l.rng.Uint32()}
		p.Bytes = segment.AppendStart(p.Bytes, s, &h)
		l.End = past.Mark{LSN: h.End(), Sum: h.Sum}
	}
	for range 1 + l.rng.IntN(3) {
		for i := l.rng.IntN(3); i >= 0; i-- {
			l.time++
			h := segment.Header{Kind: past.KindUser, LSN: l.End.LSN, Time: l.time, Nonce: l.rng.Uint32(),
				Previous: l.End.Sum}
			if i > 0 {
				h.Flags = segment.FlagMore
			}
			p.Bytes = geo.AppendFrame(p.Bytes, &h, fmt.Sprintf("m%d", l.rng.IntN(50)), make([]byte, l.rng.IntN(1500)))
			l.End = past.Mark{LSN: h.End(), Sum: h.Sum}
		}
	}
	p.To = l.End
	l.Pieces = append(l.Pieces, p)
}

// Anchor returns an anchor with which an epoch begins at the start of the log l, after the entry that the position
// after describes.
func (l *Log) Anchor(t testing.TB, after remote.Position) *remote.Anchor {
	return &remote.Anchor{Follows: after.Number, Geometry: l.Geometry, At: l.Start, Request: NewID(t),
		Machine: uuid.UUID{9}, Format: remote.Format, Time: time.UnixMicro(l.time).UTC()}
}

// NewID returns a random ID.
func NewID(t testing.TB) uuid.UUID {
	id, err := uuid.NewRandom()
	if err != nil {
		t.Fatal(err)
	}
	return id
}
