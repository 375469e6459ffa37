package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/page"
	"github.com/varve-db/varve/wal/past"
)

// After a sync that failed, the kernel marks the pages clean although they were not written: the next sync
// returns 0 and the data is gone once the cache drops them. So a process sets the word syncing of the shared page
// before every sync, and clears it after a sync that succeeded. A process that takes sync.lock and finds syncing
// set (the previous sync failed, or its process was killed before it knew the result) reads the frames from
// durable to the tail, checks them, writes the same bytes again in place, and only then syncs.

// The shortest and the longest pause between two attempts to sync the log after a failure.
const (
	backoffFirst = 10 * time.Millisecond
	backoffMost  = time.Second
)

// slowSync is the duration from which a sync is logged and reported, because writers have waited for it, and because a
// disk that is about to fail often becomes slow first.
const slowSync = time.Second

// syncTo blocks until the log is durable up to a position. It does not sync if another process has already synced the
// log up to this position.
func (l *FileLog) syncTo(ctx context.Context, end LSN) error {
	pause := backoffFirst
	began := l.o.Clock()
	for l.shared.Durable() < end {
		select {
		case l.syncing <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		if l.shared.Durable() >= end {
			<-l.syncing
			return nil
		}
		err := l.syncOnce(ctx, end)
		<-l.syncing
		if err == nil && l.shared.Tail() < end {
			err = l.older() // otherwise it would never become durable
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, errs.ErrSyncFailed) && !vfs.IsUnopened(err) || errors.Is(err, errRewrite) ||
			ctx.Err() != nil || l.o.Clock().Sub(began) > l.o.LockWait {
			return err
		}
		if err2 := l.o.Sleep(ctx, pause); err2 != nil {
			return errors.Join(err, err2)
		}
		pause = min(2*pause, backoffMost)
	}
	return nil
}

func (l *FileLog) syncOnce(ctx context.Context, end LSN) error {
	held, err := l.lockUnless(ctx, roleSync, vfs.ModeExclusive, func() bool { return l.shared.Durable() >= end })
	if err != nil {
		return err
	}
	if !held {
		return l.lost()
	}
	defer l.unlock(roleSync)
	if err := l.lost(); err != nil || l.shared.Durable() >= end {
		return err
	}
	return l.syncLocked()
}

// syncLocked makes all frames durable that are in the log now. The caller holds sync.lock.
func (l *FileLog) syncLocked() error {
	from, to := l.shared.Durable(), l.shared.Tail()
	open, err := l.toSync(from, to)
	if vfs.IsUnopened(err) {
		return err // no sync was attempted, so none has failed
	}
	if err == nil && l.shared.Syncing() {
		err = l.rewrite(from, to)
	}
	if err != nil {
		l.shared.SetPoison(page.SyncFailed)
		return fmt.Errorf("%w: %w", errs.ErrSyncFailed, err)
	}
	l.shared.SetSyncing(true)
	for _, s := range open {
		began := l.o.Clock()
		err := s.file.Datasync()
		took := l.o.Clock().Sub(began)
		if l.o.Synced != nil {
			l.o.Synced(took)
		}
		if took > slowSync {
			l.o.Logger.Warn("slow sync", "segment", s.number, "took", took)
			l.o.Event(Event{Kind: EventSlowSync, Path: "wal/" + segment.Name(s.number), Took: took, Err: err})
		}
		if err != nil {
			l.shared.SetPoison(page.SyncFailed)
			l.o.Logger.Error("sync failed", "segment", s.number, "err", err)
			l.o.Event(Event{Kind: EventSyncFailed, Path: "wal/" + segment.Name(s.number), Err: err})
			return fmt.Errorf("%w: %w", errs.ErrSyncFailed, err)
		}
	}
	l.shared.RaiseDurable(to)
	l.shared.SetSyncing(false)
	l.wake()
	if l.shared.Poison() == page.SyncFailed {
		l.shared.SetPoison(page.Healthy)
		l.o.Event(Event{Kind: EventSyncHealed, Path: "wal"})
	}
	return nil
}

// numbered is an open segment file, with the number of the segment.
type numbered struct {
	number uint64
	file   vfs.File
}

// toSync opens all segments that have frames between two positions, so that no sync begins if one of them cannot be
// opened.
func (l *FileLog) toSync(from, to LSN) ([]numbered, error) {
	var list []numbered
	for n := l.geo.Number(from); n <= l.geo.Number(to-1); n++ {
		f, err := l.segment(n)
		if errors.Is(err, past.ErrNoSegment) && n == l.geo.Number(from) && l.geo.Number(to-1) > n {
			continue // durable is the end of a segment that has been released
		}
		if err != nil {
			return nil, err
		}
		list = append(list, numbered{n, f})
	}
	return list, nil
}

// rewrite writes the frames between two positions again, unchanged. Other processes may append frames after them at the
// same time. Adjacent frames are combined into one write: with one write per frame, 64 MiB of small frames took longer
// than the rest of a recovery.
func (l *FileLog) rewrite(from, to LSN) error {
	w := past.NewWalker(l.geo, l.source, Mark{LSN: from})
	var run []byte
	at := from // position of run
	write := func() error {
		if len(run) == 0 {
			return nil
		}
		f, err := l.segment(l.geo.Number(at))
		if err == nil {
			_, err = f.WriteAt(run, l.geo.Offset(at))
		}
		run = run[:0]
		return err
	}
	for w.At.LSN < to {
		n := w.At.LSN
		h, payload, err := w.Next(to)
		if err != nil {
			return fmt.Errorf("%w: %w", errRewrite, err)
		}
		if l.geo.Number(h.LSN) != l.geo.Number(n) || h.Kind == segment.KindStart {
			// The past.Walker has passed a start frame, which it does not return.
			if payload, err = l.startBytes(h.LSN); err != nil {
				return fmt.Errorf("%w: %w", errRewrite, err)
			}
		}
		if h.LSN != at+uint64(len(run)) || l.geo.Offset(h.LSN) == 0 || len(run) >= past.Chunk {
			if err := write(); err != nil {
				return err
			}
			at = h.LSN
		}
		run = l.geo.AppendFrame(run, &h, string(payload[:h.KeyLen]), payload[h.KeyLen:])
	}
	return write()
}

// startBytes returns the payload of the start frame of the segment that contains pos.
func (l *FileLog) startBytes(pos LSN) ([]byte, error) {
	f, err := l.segment(l.geo.Number(pos))
	if err != nil {
		return nil, err
	}
	var b [segment.StartSize]byte
	if _, err := past.ReadFull(f, b[:], 0); err != nil {
		return nil, err
	}
	return b[segment.HeaderSize:], nil
}
