package dir

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

const (
	entryMagic   = "VARVEPCE"
	entryVersion = 1
	entryHead    = 264

	kindAnchor = 1
	kindPiece  = 2
)

// head describes an entry, which is a piece or the beginning (anchor) of an epoch. It is encoded at the beginning of
// the entry's file, before the bytes of the piece.
type head struct {
	kind     uint32
	position remote.Position
	from     past.Mark
	length   uint64
	sha      [32]byte // checksum (SHA-256) of the bytes
	previous [32]byte // checksum of the previous entry's head
	sum      [32]byte // checksum of this head; set by encode and decode
}

func (h *head) encode(id uuid.UUID) []byte {
	le := binary.LittleEndian
	p := &h.position
	b := append(make([]byte, 0, entryHead), entryMagic...)
	b = le.AppendUint32(b, entryVersion)
	b = le.AppendUint32(b, h.kind)
	b = le.AppendUint64(b, p.Number)
	b = le.AppendUint64(b, p.Epoch)
	b = append(b, id[:]...)
	b = appendStore(b, p.Geometry, p.Log)
	b = appendMark(b, h.from)
	b = appendMark(b, p.At)
	b = append(b, p.Machine[:]...)
	b = append(b, p.Request[:]...)
	b = le.AppendUint32(b, p.Format)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, uint64(p.Time.UnixMicro()))
	b = le.AppendUint64(b, h.length)
	b = append(b, h.sha[:]...)
	b = append(b, h.previous[:]...)
	h.sum = sha256.Sum256(b)
	return append(b, h.sum[:]...)
}

func appendStore(b []byte, geo segment.Geometry, log uint64) []byte {
	b = append(b, geo.UUID[:]...)
	b = binary.LittleEndian.AppendUint64(b, geo.Size)
	return binary.LittleEndian.AppendUint64(b, log)
}

func appendMark(b []byte, m past.Mark) []byte {
	b = binary.LittleEndian.AppendUint64(b, m.LSN)
	return binary.LittleEndian.AppendUint64(b, m.Sum)
}

func geometryAt(b []byte) (geo segment.Geometry, log uint64) {
	copy(geo.UUID[:], b)
	geo.Size = binary.LittleEndian.Uint64(b[16:])
	return geo, binary.LittleEndian.Uint64(b[24:])
}

func markAt(b []byte) past.Mark {
	return past.Mark{LSN: binary.LittleEndian.Uint64(b), Sum: binary.LittleEndian.Uint64(b[8:])}
}

var (
	errSum     = errors.New("the head of the file does not match its checksum")
	errOther   = errors.New("the file belongs to another copy, or is the entry with another number")
	errContent = errors.New("the head matches its checksum, but no program writes this content")
)

// decodeHead parses b as the head of the entry with the given number. It returns an error if b is damaged, or has
// another number or the id of another remote.
func decodeHead(b []byte, id uuid.UUID, number uint64) (h head, err error) {
	le := binary.LittleEndian
	if len(b) < entryHead || string(b[:8]) != entryMagic {
		return h, errSum
	}
	h.sum = sha256.Sum256(b[:232])
	if [32]byte(b[232:264]) != h.sum {
		return h, errSum
	}
	if v := le.Uint32(b[8:]); v > entryVersion {
		return h, &errs.NewerError{Format: uint64(v), Reads: entryVersion}
	}
	p := &h.position
	h.kind, p.Number, p.Epoch = le.Uint32(b[12:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	if uuid.UUID(b[32:48]) != id || p.Number != number {
		return h, errOther
	}
	p.Geometry, p.Log = geometryAt(b[48:])
	h.from, p.At = markAt(b[80:]), markAt(b[96:])
	p.Machine, p.Request = uuid.UUID(b[112:128]), uuid.UUID(b[128:144])
	p.Format = le.Uint32(b[144:])
	micro := le.Uint64(b[152:])
	h.length = le.Uint64(b[160:])
	h.sha, h.previous = [32]byte(b[168:200]), [32]byte(b[200:232])
	geo := p.Geometry
	switch {
	case micro > past.MostTime, p.Epoch == 0, !geo.Valid(), !geo.Holds(h.from.LSN), !geo.Holds(p.At.LSN):
		return h, errContent
	case h.kind == kindAnchor && h.length == 0 && h.from == p.At:
	case h.kind == kindPiece && h.length > 0 && h.length <= uint64(remote.MostPiece(geo)) && h.from.LSN < p.At.LSN:
	default:
		return h, errContent
	}
	p.Time = time.UnixMicro(int64(micro)).UTC()
	return h, nil
}

// perFolder is the number of entries in one folder.
const perFolder = 1024

// maxNumber is the highest number of an entry: names have 16 digits.
const maxNumber = uint64(math.MaxInt64) / 1024

func folderOf(number uint64) string { return fmt.Sprintf("%013d", number/perFolder) }
func nameOf(number uint64) string   { return fmt.Sprintf("%016d", number) }

// parseName parses a file name as a decimal number. ok is false if the name does not consist of exactly the given
// number of digits.
func parseName(name string, digits int) (n uint64, ok bool) {
	if len(name) != digits {
		return 0, false
	}
	for _, c := range name {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, n <= maxNumber
}
