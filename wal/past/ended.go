package past

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// A reader that ships pieces of the log to a copy can continue only as long as the log is the same one.
// The file wal/ended has a record for each event after which such a copy must begin again:
//
//	0   8 bytes "VARVEEND"
//	8   uint32 version 1, uint32 number of records, at most 64
//	16  16 bytes UUID of the store
//	32  records, the oldest first: uint64 epoch, uint64 position, int64 time (Unix microseconds),
//	    uint64 reason
//	..  uint64 xxhash64 of everything before
//
// An epoch is greater than every earlier one of the store, even if the file with those was lost: it is
// the time of the record in microseconds, or one more than the last epoch. A store without the file is in
// epoch 0. When a 65th record is added, the oldest one is dropped.
const (
	EndedName   = "ended" // name of the file in wal/
	MostEndings = 64      // records in the file: when another one is added, the oldest is dropped

	endedMagic   = "VARVEEND"
	endedVersion = 1
	endedHead    = 32
	endedRecord  = 32
	epochMost    = 1 << 62
)

// Reason is the reason why a log has ended, so that copies of it must begin again.
type Reason uint64

// The reasons why a log has ended. Programs of a later version may record others.
const (
	// Unknown: the log does not have the position and chain hash up to which the reader has read it, and no reason is
	// recorded. Then the files of the log were replaced by those of another log, or by older ones.
	Unknown Reason = iota
	// Restored: the store was restored from a backup.
	Restored
	// FilesLost: the segments of the log were missing when the store was opened.
	FilesLost
	// Repaired: a repair has begun a new log after the damaged one.
	Repaired
	// Purged: a purge has erased entries of the log, and an earlier copy still has them. The log itself continues.
	Purged
	// RecordLost: wal/ended, which records the reasons, was damaged.
	RecordLost
)

var reasons = [...]string{
	Unknown:    "the files of the log were replaced by those of another log or by older ones",
	Restored:   "the store was restored from a backup",
	FilesLost:  "the files of the log were missing",
	Repaired:   "a repair has begun a new log",
	Purged:     "a purge has erased entries that the copy still contains",
	RecordLost: "the file wal/ended, which records such events, was damaged",
}

// String returns a description of the reason.
func (r Reason) String() string {
	if r < Reason(len(reasons)) {
		return reasons[r]
	}
	return fmt.Sprintf("reason %d, which a newer version of the program has recorded", uint64(r))
}

// moves reports whether, after a log has ended for this reason, the next log begins above the positions of the ended
// log.
func (r Reason) moves() bool { return r == Restored || r == FilesLost || r == Repaired }

// Ending is a record in wal/ended: a log has ended, and copies of it must begin again.
type Ending struct {
	Epoch uint64 // epoch of the log that follows
	// Position where the next log begins. If the same log continues, position below which everything must be copied
	// again.
	Next   LSN
	Time   time.Time
	Reason Reason
}

// ErrBegunAgain is matched by every EndedError. It means that the log that a reader has copied has ended, and that the
// copy must begin again with a full copy of the store.
var ErrBegunAgain = errors.New("the log from which the copy was made has ended")

// EndedError means that the log that a reader has copied has ended. The error matches ErrBegunAgain.
type EndedError struct {
	Reason Reason
	At     LSN       // position up to which the reader has read the log
	Next   LSN       // position where another log begins; 0 if unknown
	Time   time.Time // time at which the end was recorded; zero if it was not recorded
	Err    error     // error of reading the log after At; nil if there was no error
}

// Error returns the message, in one line.
func (e *EndedError) Error() string {
	when := ""
	if !e.Time.IsZero() {
		when = " at " + e.Time.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%v: a copy cannot continue from position %d: %v%s → make a full copy",
		ErrBegunAgain, e.At, e.Reason, when)
}

// Unwrap returns ErrBegunAgain and Err.
func (e *EndedError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrBegunAgain}
	}
	return []error{ErrBegunAgain, e.Err}
}

// error returns the error for a reader that has read the ended log up to position pos. err is the error of reading
// the log after pos, or nil.
func (e *Ending) error(pos LSN, err error) *EndedError {
	ended := &EndedError{Reason: e.Reason, At: pos, Time: e.Time, Err: err}
	if e.Reason.moves() {
		ended.Next = e.Next
	}
	return ended
}

// ID identifies a log. It changes with every event after which copies of the log must begin again.
type ID struct {
	Store [16]byte
	Epoch uint64 // epoch of the log; 0: no log of the store has ended
}

// ID returns the ID of the log. If wal/ended is damaged, the error is a *errs.CorruptionError. The next process that
// opens the store while no other process has it open replaces the file.
func (p *Log) ID() (ID, error) {
	list, err := p.Endings()
	id := ID{Store: p.Geometry.UUID}
	if len(list) > 0 {
		id.Epoch = list[len(list)-1].Epoch
	}
	return id, err
}

// Endings returns the records of ended logs in wal/ended, the oldest first.
func (p *Log) Endings() ([]Ending, error) {
	b, err := p.readSmall(EndedName, endedHead+MostEndings*endedRecord+8)
	if err != nil || b == nil {
		return nil, err
	}
	list, store, err := decodeEndings(b)
	if err == nil && store != p.Geometry.UUID {
		err = errOfOther
	}
	if err != nil {
		return nil, badSmall(EndedName, err)
	}
	return list, nil
}

// badSmall returns a *errs.CorruptionError for a small file in wal/, such as wal/ended, whose content is invalid. It
// returns the error for a newer format unchanged.
func badSmall(name string, err error) error {
	if errors.Is(err, errs.ErrNewerFormat) {
		return err
	}
	return &errs.CorruptionError{Path: "wal/" + name, Offset: -1, Err: err}
}

// readSmall returns the content of a small file in the folder of the log, or nil if the file is missing. If the file
// has more than limit bytes, the error is a *errs.CorruptionError.
func (p *Log) readSmall(name string, limit int64) ([]byte, error) {
	b, err := vfs.ReadFile(p.FS, p.path(name), limit)
	switch {
	case err == nil:
		return append([]byte{}, b...), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, errs.ErrTooLarge), errors.Is(err, errs.ErrInvalid), errors.Is(err, vfs.ErrNotRegular):
		return nil, badSmall(name, err)
	}
	return nil, readError("reading", p.path(name), err)
}

var (
	errSum     = errors.New("the file does not match its checksum")
	errOfOther = errors.New("the file belongs to another store")
	errContent = errors.New("the file has a correct checksum, but invalid content")
)

func decodeEndings(b []byte) (list []Ending, store [16]byte, err error) {
	le := binary.LittleEndian
	if len(b) < endedHead+8 || string(b[:8]) != endedMagic ||
		xxhash.Sum64(b[:len(b)-8]) != le.Uint64(b[len(b)-8:]) {
		return nil, store, errSum
	}
	if v := le.Uint32(b[8:]); v != endedVersion {
		return nil, store, &errs.NewerError{Path: "wal/" + EndedName, Format: uint64(v), Reads: endedVersion}
	}
	n := int(le.Uint32(b[12:]))
	if n < 1 || n > MostEndings || len(b) != endedHead+n*endedRecord+8 {
		return nil, store, errContent
	}
	copy(store[:], b[16:])
	last := uint64(0)
	for i := range n {
		r := b[endedHead+i*endedRecord:]
		epoch, micro := le.Uint64(r), int64(le.Uint64(r[16:]))
		if epoch <= last || epoch > epochMost || micro < 0 || micro > MostTime {
			return nil, store, errContent
		}
		last = epoch
		list = append(list, Ending{epoch, le.Uint64(r[8:]), time.UnixMicro(micro).UTC(), Reason(le.Uint64(r[24:]))})
	}
	return list, store, nil
}

func encodeEndings(list []Ending, store [16]byte) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, endedHead+len(list)*endedRecord+8), endedMagic...)
	b = le.AppendUint32(b, endedVersion)
	b = le.AppendUint32(b, uint32(len(list)))
	b = append(b, store[:]...)
	for _, e := range list {
		b = le.AppendUint64(b, e.Epoch)
		b = le.AppendUint64(b, e.Next)
		b = le.AppendUint64(b, uint64(e.Time.UnixMicro()))
		b = le.AppendUint64(b, uint64(e.Reason))
	}
	return le.AppendUint64(b, xxhash.Sum64(b))
}

// Broken durably records in wal/ended that the log has ended, and the reason. After that, every copy of the log must
// begin again with a full copy. next is the position where the next log begins. A caller that begins a new log calls
// Broken before the first segment of the new log exists. A purge calls Broken when it is complete. Two calls never run
// at the same time: the caller has exclusive use of the log or holds flush.lock.
//
// If wal/ended cannot be read, Broken replaces it, with an epoch that was not used before.
func (p *Log) Broken(reason Reason, next LSN, now time.Time, mode fs.FileMode) error {
	list, err := p.Endings()
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	micro := min(max(now.UnixMicro(), 1), MostTime)
	epoch := uint64(micro)
	if n := len(list); n > 0 && list[n-1].Epoch < epochMost {
		epoch = max(epoch, list[n-1].Epoch+1)
	} else {
		list = nil
	}
	list = append(list, Ending{Epoch: epoch, Next: next, Time: time.UnixMicro(micro), Reason: reason})
	list = list[max(0, len(list)-MostEndings):]
	return p.writeSmall(EndedName, encodeEndings(list, p.Geometry.UUID), mode)
}

// writeSmall durably replaces a small file in the folder of the log. If the process is killed, it leaves a temporary
// file; wal.IsMaking returns true for the name of this file.
func (p *Log) writeSmall(name string, b []byte, mode fs.FileMode) error {
	temp := p.path(fmt.Sprintf("%d-%s.new", p.FS.Host().PID, name))
	if err := vfs.WriteDurable(p.FS, temp, p.path(name), b, mode); err != nil {
		return readError("writing", p.path(name), err)
	}
	return nil
}

// Continues returns nil if a reader that has read the log with the ID id up to mark can continue to read. If that log
// has ended, the error is an *EndedError. Continues reads the segment that contains mark, so a reader should call
// Continues only when it begins. If this segment is no longer kept, Continues does not check mark; Pieces then reports
// a gap.
func (p *Log) Continues(ctx context.Context, id ID, mark Mark) error {
	if err := p.continues(id, mark); err != nil {
		return err
	}
	return p.contains(ctx, mark)
}

// continues is like Continues, but uses only the records in wal/ended, and does not check mark in the log.
func (p *Log) continues(id ID, mark Mark) error {
	list, err := p.Endings()
	if err != nil {
		return err
	}
	if id.Store != p.Geometry.UUID {
		ending := Ending{}
		if n := len(list); n > 0 {
			ending = list[n-1]
		}
		return ending.error(mark.LSN, nil)
	}
	last := uint64(0)
	for i := range list {
		if last = list[i].Epoch; last > id.Epoch {
			return list[i].error(mark.LSN, nil)
		}
	}
	if last != id.Epoch { // the record was lost with files that were replaced
		return (&Ending{}).error(mark.LSN, nil)
	}
	return nil
}

// contains returns an *EndedError if the log has another chain hash at the position of mark. If the log is damaged
// or no longer kept there, contains returns nil.
func (p *Log) contains(ctx context.Context, mark Mark) error {
	if mark.LSN == 0 || mark.Sum == 0 {
		return nil
	}
	end, err := p.EndOf(p.Geometry.Number(mark.LSN - 1))
	if err != nil || end == mark {
		return err
	}
	m, err := p.Chain(ctx, mark.LSN)
	var none *NoFrameError
	switch {
	case err == nil && m == mark, errors.Is(err, errs.ErrTruncated):
		return nil
	case err == nil, errors.Is(err, errs.ErrNotFound):
		return (&Ending{}).error(mark.LSN, nil)
	case errors.As(err, &none) && errors.Is(none.Here, segment.ErrEnd) && (end.Sum == 0 || end.LSN < mark.LSN):
		return (&Ending{}).error(mark.LSN, err) // the frames of the log end before the mark
	case IsNoFrame(err):
		return nil // damage, for which Pieces returns a gap
	}
	return err
}
