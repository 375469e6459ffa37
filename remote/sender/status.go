package sender

import (
	"time"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Status describes how far a sender has sent the log.
type Status struct {
	Place string
	Epoch uint64 // epoch; 0: nothing was sent yet

	Sent    past.Mark   // mark up to which the remote has the log, as far as this Sender knows
	Durable segment.LSN // position up to which the log was durable when all of it was sent
	Success time.Time   // time of the last round that sent everything; zero: none
	Failure time.Time   // time of the last round that failed
	Err     error       // error of that round; nil if the last round succeeded

	Began  time.Time // time at which this Sender began an epoch; zero: it has begun none
	Reason string    // reason why that epoch was begun; "" for the first one
	Gap    *Gap      // last part of the log that was not sent

	Snapshot    time.Time // time of the last snapshot that this Sender has saved
	SnapshotErr error     // error of the last call of Maintain
}

// Gap is a part of the log that the remote does not have.
type Gap struct {
	From, To segment.LSN
	Time     time.Time // when the gap was found
	Err      error     // reason why the log cannot be read there
}

// Status returns the status of the sender. behind is the number of bytes of the log that are durable and not sent yet,
// including padding.
func (s *Sender) Status() (st Status, behind uint64) {
	durable := s.source.Durable()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Sent.LSN > 0 && durable > s.status.Sent.LSN {
		behind = durable - s.status.Sent.LSN
	}
	return s.status, behind
}

// note records the result of a round in the status. err is nil if the round succeeded.
func (s *Sender) note(err error) {
	now := s.o.Clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Err = err; err == nil {
		s.status.Success = now
	} else {
		s.status.Failure = now
	}
}
