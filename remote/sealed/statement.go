package sealed

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

const (
	magic         = "varvesl\n"
	version       = 1
	statementSize = 280
	signedSize    = 216

	kindPiece    = 1
	kindSnapshot = 2
)

// statement has the properties of a piece or a snapshot that the signature of a machine covers.
type statement struct {
	kind       uint32
	geometry   segment.Geometry
	epoch, log uint64
	from, to   past.Mark // masked
	id         uuid.UUID
	time       time.Time
	length     uint64   // of the encrypted bytes
	sha256     [32]byte // of the encrypted bytes
	key        [32]byte // commitment of the chain key
}

// append appends the encoded statement and its signature with the key sign to b.
func (s *statement) append(b []byte, sign ed25519.PrivateKey) []byte {
	le, start := binary.LittleEndian, len(b)
	b = append(b, magic...)
	b = le.AppendUint32(b, version)
	b = le.AppendUint32(b, s.kind)
	b = append(b, s.geometry.UUID[:]...)
	for _, n := range []uint64{s.geometry.Size, s.epoch, s.log, s.from.LSN, s.from.Sum, s.to.LSN, s.to.Sum} {
		b = le.AppendUint64(b, n)
	}
	b = append(b, s.id[:]...)
	b = le.AppendUint64(b, uint64(s.time.UnixMicro()))
	b = le.AppendUint64(b, s.length)
	b = append(b, s.sha256[:]...)
	b = append(b, s.key[:]...)
	b = append(b, sign.Public().(ed25519.PublicKey)...)
	return append(b, ed25519.Sign(sign, b[start:])...)
}

var (
	errNoStatement = errors.New("the sealed bytes end without a statement")
	errSignature   = errors.New("the signature does not match the signed bytes")
	errDiffers     = errors.New("the signature belongs to another part of a copy")
	errBytes       = errors.New("the encrypted bytes differ from the signed bytes")
)

// parse parses a statement. It verifies the signature with the key of the signer, which the statement contains.
func parse(b []byte) (s statement, signer ed25519.PublicKey, err error) {
	le := binary.LittleEndian
	if len(b) != statementSize || string(b[:8]) != magic {
		return s, nil, errNoStatement
	}
	if v := le.Uint32(b[8:]); v != version {
		return s, nil, &errs.NewerError{Format: uint64(v), Reads: version}
	}
	signer = bytes.Clone(b[184:signedSize])
	if !ed25519.Verify(signer, b[:signedSize], b[signedSize:]) {
		return s, nil, errSignature
	}
	s.kind = le.Uint32(b[12:])
	copy(s.geometry.UUID[:], b[16:])
	s.geometry.Size, s.epoch, s.log = le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])
	s.from = past.Mark{LSN: le.Uint64(b[56:]), Sum: le.Uint64(b[64:])}
	s.to = past.Mark{LSN: le.Uint64(b[72:]), Sum: le.Uint64(b[80:])}
	copy(s.id[:], b[88:])
	s.time = time.UnixMicro(int64(le.Uint64(b[104:]))).UTC()
	s.length = le.Uint64(b[112:])
	copy(s.sha256[:], b[120:])
	copy(s.key[:], b[152:])
	return s, signer, nil
}

// trusted parses a statement, and verifies that a known machine has signed it. want describes the piece or snapshot
// that the place has returned. If the statement differs from want in anything except length, sha256 and key, trusted
// returns an error.
func (r *Remote) trusted(b []byte, want statement) (s statement, err error) {
	s, signer, err := parse(b)
	if err != nil {
		return s, err
	}
	known := slices.ContainsFunc(r.o.Signers, func(k ed25519.PublicKey) bool { return k.Equal(signer) })
	if !known {
		return s, &SignerError{Place: r.inner.Place(), Signer: signer}
	}
	want.length, want.sha256, want.key = s.length, s.sha256, s.key
	want.time = time.UnixMicro(want.time.UnixMicro()).UTC()
	if s != want || r.chain != nil && s.key != r.chain.commitment() {
		return s, errDiffers
	}
	return s, nil
}

// stated returns the statement about the piece p, whose marks are masked. It does not set length, sha256 and key.
func stated(p *remote.Piece, geo segment.Geometry) statement {
	return statement{kind: kindPiece, geometry: geo, epoch: p.Epoch, from: p.From, to: p.To, time: p.Time}
}

// statedOf returns the statement about the snapshot s, whose marks are masked. It does not set length, sha256 and key.
func statedOf(s *remote.Snapshot) statement {
	return statement{kind: kindSnapshot, geometry: s.Geometry, epoch: s.Epoch, log: s.Log, from: s.Begin, to: s.End,
		id: s.ID, time: s.Time}
}
