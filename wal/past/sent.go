package past

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
)

// A reader that copies pieces of the log to another place records in wal/sent the mark up to which that copy has
// the log. The segments after that mark stay in the archive, up to a size limit, even if the settings of the
// history would remove them:
//
//	0   8 bytes "VARVESNT"
//	8   uint32 version 1, uint32 tag of the copy (remote/sender.Binding.Tag), 0: unknown
//	16  16 bytes UUID of the store, uint64 epoch of the log: its ID
//	40  uint64 position, uint64 chain hash there
//	56  int64 time of the record, Unix microseconds
//	64  uint64 xxhash64 of everything before
//
// The file is a hint: the copy itself is authoritative for what it has. A store without the file has no
// such copy.
const (
	sentName    = "sent"
	sentMagic   = "VARVESNT"
	sentVersion = 1
	sentSize    = 72
)

// Sent is the content of the file wal/sent: the mark up to which a copy in another place has the log.
type Sent struct {
	ID   ID
	Mark Mark
	Copy uint32    // tag of the copy, and of the user's binding to it, which tells them from others; 0: unknown
	Time time.Time // time of the record

	Behind uint64 // bytes of the log that are durable but not in the copy
}

// Sent returns the content of wal/sent, and false if the file does not exist. durable is a position up to which the log
// is durable. The error tells why the copy in the other place cannot continue, or why this is unknown. It is an
// *EndedError if the log of the copy has ended, a *errs.CopyBehindError if the log after the mark is no longer kept,
// and a *errs.CorruptionError if wal/sent or wal/ended is damaged.
func (p *Log) Sent(durable LSN) (s Sent, ok bool, err error) {
	b, err := p.readSmall(sentName, sentSize)
	if err != nil || b == nil {
		return s, err != nil, err
	}
	s, err = decodeSent(b)
	if err == nil && s.ID.Store != p.Geometry.UUID {
		err = errOfOther
	}
	if err == nil && !p.Geometry.Holds(s.Mark.LSN) {
		err = errContent
	}
	if err != nil {
		return Sent{}, true, badSmall(sentName, err)
	}
	if err := p.continues(s.ID, s.Mark); err != nil {
		return s, true, err
	}
	if s.Mark.LSN > durable { // files of an earlier moment were restored
		return s, true, (&Ending{}).error(s.Mark.LSN, nil)
	}
	s.Behind = durable - s.Mark.LSN
	return s, true, p.reaches(s.Mark.LSN, durable)
}

// reaches returns a *errs.CopyBehindError if the log after position pos is no longer kept. durable is the position
// up to which the log is durable.
func (p *Log) reaches(pos, durable LSN) error {
	number := p.Geometry.Number(pos - 1)
	if _, _, err := p.Start(number); !isMissingSegment(err) {
		return nil // it exists, or is damaged, which verify reports
	}
	if s, _, err := p.Start(number + 1); err == nil && (s.PrevEnd == pos ||
		s.PrevEnd == 0 && pos == p.Geometry.Start(number+1)) {
		return nil // the mark is where the removed segment ends, or where the log begins
	}
	oldest, _, _, err := p.Oldest(durable)
	if err != nil || oldest <= pos {
		return err
	}
	return &errs.CopyBehindError{Sent: pos, Oldest: oldest}
}

// SetSent durably records in wal/sent that a copy in another place has the log below mark.LSN. A batch must end at
// this position. id is the ID that the log had when the copy was begun. If that log has ended since, SetSent
// writes nothing, and the error is an *EndedError.
func (p *Log) SetSent(id ID, mark Mark, tag uint32, now time.Time, mode fs.FileMode) error {
	if !p.Geometry.Holds(mark.LSN) {
		return fmt.Errorf("%w: position %d is not the end of a batch", errs.ErrInvalid, mark.LSN)
	}
	if err := p.continues(id, mark); err != nil {
		return err
	}
	micro := min(max(now.UnixMicro(), 0), MostTime)
	s := Sent{ID: id, Mark: mark, Copy: tag, Time: time.UnixMicro(micro)}
	return p.writeSmall(sentName, s.encode(), mode)
}

// ForgetSent removes wal/sent. Call it when no copy in another place needs the log any more.
func (p *Log) ForgetSent() error {
	err := p.FS.Remove(p.path(sentName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = p.FS.SyncDir(p.Dir)
	}
	if err != nil {
		return readError("removing", p.path(sentName), err)
	}
	return nil
}

func (s *Sent) encode() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, sentSize), sentMagic...)
	b = le.AppendUint32(b, sentVersion)
	b = le.AppendUint32(b, s.Copy)
	b = append(b, s.ID.Store[:]...)
	b = le.AppendUint64(b, s.ID.Epoch)
	b = le.AppendUint64(b, s.Mark.LSN)
	b = le.AppendUint64(b, s.Mark.Sum)
	b = le.AppendUint64(b, uint64(s.Time.UnixMicro()))
	return le.AppendUint64(b, xxhash.Sum64(b))
}

func decodeSent(b []byte) (s Sent, err error) {
	le := binary.LittleEndian
	if len(b) != sentSize || string(b[:8]) != sentMagic || xxhash.Sum64(b[:sentSize-8]) != le.Uint64(b[sentSize-8:]) {
		return s, errSum
	}
	if v := le.Uint32(b[8:]); v != sentVersion {
		return s, &errs.NewerError{Path: "wal/" + sentName, Format: uint64(v), Reads: sentVersion}
	}
	micro := int64(le.Uint64(b[56:]))
	if micro < 0 || micro > MostTime {
		return s, errContent
	}
	s.Copy = le.Uint32(b[12:])
	copy(s.ID.Store[:], b[16:])
	s.ID.Epoch = le.Uint64(b[32:])
	s.Mark = Mark{le.Uint64(b[40:]), le.Uint64(b[48:])}
	s.Time = time.UnixMicro(micro).UTC()
	return s, nil
}
