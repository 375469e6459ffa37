package wal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Functions with which the files and the index, which are views of the log, record up to which position they
// contain the log.

// Checkpoint reads the newest checkpoint.
func (l *FileLog) Checkpoint() (Checkpoint, error) {
	newest := uint64(0)
	if l.shared.Mapped() && !l.private.Load() {
		newest = l.shared.Sequence()
	}
	c, err := readCheckpoint(l.o.FS, l.o.Dir)
	if errors.Is(err, errSlot) && l.private.Load() { // no process can write one: what was read is all there is
		l.state.mu.Lock()
		defer l.state.mu.Unlock()
		m := l.state.applied
		return Checkpoint{UUID: l.geo.UUID, SegmentSize: l.geo.Size, Flushed: m, Spilled: m, Attested: m,
			Time: l.state.lastTime, Features: l.required}, nil
	}
	if err != nil {
		return c, l.ioError("reading", filepath.Join(l.o.Dir, "checkpoint"), err)
	}
	return c, l.sameCheckpoint(&c, newest)
}

// SetCheckpoint makes new positions durable in the checkpoint, and then publishes them in the shared page. It sets the
// attested position to the position up to which this process has applied the log, because all applied entries are
// durable.
func (l *FileLog) SetCheckpoint(held *Held, flushed, spilled Mark, mtimes [Folders]int64) error {
	if err := held.proves(l); err != nil {
		return err
	}
	attested := l.AppliedMark()
	if attested.LSN < flushed.LSN || attested.LSN < spilled.LSN {
		return fmt.Errorf("checkpoint: the position flushed (%d) or spilled (%d) is beyond the applied position (%d)",
			flushed.LSN,
			spilled.LSN, attested.LSN)
	}
	if err := l.putCheckpoint(Checkpoint{Flushed: flushed, Spilled: spilled, Attested: attested,
		Mtimes: mtimes}); err != nil {
		return err
	}
	l.shared.RaiseFlushed(flushed.LSN)
	l.shared.RaiseSpilled(spilled.LSN)
	return nil
}

// RecordConfig records in the checkpoint that the store has a config.json. It does nothing if that is already recorded,
// or if another process has flush.lock: that process records it with its next checkpoint.
func (l *FileLog) RecordConfig() error {
	if c, err := l.Checkpoint(); err != nil || c.Config || !l.o.Config() {
		return err
	}
	held, err := l.TryLockFlush()
	if err != nil || held == nil {
		return err
	}
	defer held.Unlock()
	c, err := l.Checkpoint()
	if err != nil {
		return err
	}
	return l.putCheckpoint(c)
}

func (l *FileLog) lastTime() int64 {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.state.lastTime
}

// putCheckpoint writes c into the next slot of the checkpoint, together with all features of the store.
func (l *FileLog) putCheckpoint(c Checkpoint) error {
	last, err := readCheckpoint(l.o.FS, l.o.Dir)
	if err != nil && !errors.Is(err, errSlot) {
		return l.ioError("reading", filepath.Join(l.o.Dir, "checkpoint"), err)
	}
	if err == nil {
		if err := l.ownCheckpoint(&last); err != nil {
			return err
		}
	}
	c.Features |= last.Features | l.required | l.Features() // during a recovery shared does not have them yet
	c.Home, c.Config = l.home, last.Config || l.o.Config()
	// linked while the log is open: the other name keeps the old file
	if path := filepath.Join(l.o.Dir, "checkpoint"); l.linked(path) {
		if err := l.copyOver(path); err != nil {
			return l.ioError("replacing the hard link by a copy:", path, err)
		}
		if l.place.checkpoint.file != nil {
			l.knowCheckpoint()
		}
	}
	c.Sequence, c.UUID, c.SegmentSize, c.Time = last.Sequence+1, l.geo.UUID, l.geo.Size, max(last.Time, l.lastTime())
	if err := writeCheckpoint(l.o.FS, l.o.Dir, c, l.o.FileMode); err != nil {
		return l.ioError("writing", filepath.Join(l.o.Dir, "checkpoint"), err)
	}
	l.wroteCheckpoint(&c)
	return nil
}

// putAside copies the bytes of a torn tail into quarantine/, without the zeros at their end, and sets the fields of t
// that describe the copy. Call it before the tail is cut off.
func (l *FileLog) putAside(t *TornTail) error {
	number := l.geo.Number(t.At)
	f, err := l.segment(number)
	if errors.Is(err, past.ErrNoSegment) {
		return nil
	}
	if err != nil {
		return err
	}
	b := make([]byte, min(tornKept, l.geo.End(number)-t.At))
	n, err := past.ReadFull(f, b, l.geo.Offset(t.At))
	if err != nil {
		return err
	}
	for n > 0 && b[n-1] == 0 {
		n--
	}
	if n == 0 {
		return nil
	}
	t.Bytes = int64(n)
	why := "the last write to the log was incomplete and was cut off"
	where, err := l.quarantine().Bytes(fmt.Sprintf("torn-tail-%d.bin", t.At), b[:n],
		docfile.Note{Why: why, From: "wal/" + segment.Name(number)})
	t.Path = filepath.FromSlash(where)
	return err
}

// tornKept is the maximum number of bytes of a torn tail that are copied to quarantine/. In a recycled file, only the
// first frames of the tail were written for this segment.
const tornKept = 8<<20 + segment.HeaderSize

// Distrusted reports whether the log was recovered after an unclean end, and the document files of entries above the
// position Flushed have not been written again since. Until then these files may have any content.
func (n Notes) Distrusted() bool {
	return n.l.shared.Mapped() && n.l.shared.Distrusted()
}

// Abandoned reports whether a process died while it held flush.lock, and Tidied has not been called since.
func (n Notes) Abandoned() bool {
	return n.l.shared.Mapped() && n.l.shared.Abandoned()
}

// Tidied records that the files that a killed process left in tmp/ were handled.
func (n Notes) Tidied(held *Held) error {
	if err := held.proves(n.l); err != nil {
		return err
	}
	n.l.shared.SetAbandoned(false)
	return nil
}

// IndexRebuilds returns the number of times that an existing index was rebuilt since the machine was started. If the
// number differs from that of the previous call, the caller must map the current index, even if the position Spilled
// has not changed.
func (n Notes) IndexRebuilds() uint64 {
	if !n.l.shared.Mapped() {
		return 0
	}
	return n.l.shared.IndexRebuilds()
}

// IndexRebuilt records that the index was rebuilt. Call it when the new index is in place.
func (n Notes) IndexRebuilt(held *Held) error {
	if err := held.proves(n.l); err != nil {
		return err
	}
	n.l.shared.AddIndexRebuild()
	return nil
}

// SetRest records the time until which background flushers need not write document files: the machine's uptime in
// milliseconds.
func (pc Pace) SetRest(held *Held, uptimeMillis int64) error {
	if err := held.proves(pc.l); err != nil {
		return err
	}
	pc.l.shared.SetRest(uint64(uptimeMillis))
	return nil
}

// Rest returns the last value that was given to SetRest, or 0 if SetRest was not called.
func (pc Pace) Rest() int64 {
	if !pc.l.shared.Mapped() {
		return 0
	}
	return int64(pc.l.shared.Rest())
}

// Trust records that the document files of entries above the position Flushed have been written again.
func (n Notes) Trust(held *Held) error {
	if err := held.proves(n.l); err != nil {
		return err
	}
	n.l.shared.SetDistrusted(false)
	return nil
}

// MarkBefore returns the position pos of an entry's frame together with the chain hash at this position: the
// checksum of the frame before it.
func (l *FileLog) MarkBefore(_ context.Context, pos LSN) (Mark, error) {
	f, err := l.segment(l.geo.Number(pos))
	if err != nil {
		return Mark{}, err
	}
	var b [segment.HeaderSize]byte
	n, err := past.ReadFull(f, b[:], l.geo.Offset(pos))
	if err != nil {
		return Mark{}, err
	}
	h, err := l.geo.ParseHeader(b[:n], pos)
	if err != nil {
		return Mark{}, l.corruption(&past.NoFrameError{At: pos, Here: err})
	}
	return Mark{LSN: pos, Sum: h.Previous}, nil
}
