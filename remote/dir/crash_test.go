package dir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/dir"
	"github.com/varve-db/varve/remote/remotetest"
)

// sender appends the pieces of a log as a real one does: it asks for the head, continues from there, and prunes and
// saves snapshots in between.
type sender struct {
	r         remote.Remote
	log       *remotetest.Log
	epoch     uint64
	acked     int                // number of pieces whose Append has returned nil, or that a Head has shown
	pruned    int                // number of pieces that may have been pruned
	snapshots map[uuid.UUID]bool // snapshots whose Save was called, and whether it has returned nil
	dropped   map[uuid.UUID]bool // those whose Drop was called
	last      *remote.Snapshot   // the newest that was saved
	newID     func() uuid.UUID   // IDs that do not depend on the schedule
}

// send sends everything up to a number of pieces, from wherever the remote is.
func (s *sender) send(ctx context.Context, to int) error {
	h, err := s.r.Head(ctx)
	if err != nil {
		return err
	}
	if h.Number == 0 {
		a := &remote.Anchor{Geometry: s.log.Geometry, At: s.log.Start, Request: s.newID(), Format: remote.Format,
			Time: time.Unix(1, 0)}
		if s.epoch, err = s.r.Begin(ctx, a); err != nil {
			return err
		}
		h.At = s.log.Start
	}
	at := 0
	for ; at < len(s.log.Pieces) && s.log.Pieces[at].From != h.At; at++ {
	}
	if at == len(s.log.Pieces) && h.At != s.log.End {
		return fmt.Errorf("the head %+v is not in the log", h)
	}
	if at < s.acked {
		return fmt.Errorf("the head is before piece %d, %d were acknowledged", at, s.acked)
	}
	for s.acked = at; s.acked < to; s.acked++ {
		p := s.log.Pieces[s.acked]
		if err := s.r.Append(ctx, &p); err != nil {
			return err
		}
		switch n := s.acked + 1; {
		case n%5 == 0 && n < len(s.log.Pieces):
			s.pruned = n - 3
			if _, err := s.r.Prune(ctx, 1, s.log.Pieces[n-4].To.LSN); err != nil {
				return err
			}
		case n%3 == 0:
			if err := s.snapshot(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sender) snapshot(ctx context.Context, n int) error {
	m := &remote.Snapshot{ID: s.newID(), Geometry: s.log.Geometry, Epoch: 1, Begin: s.log.Start,
		End: s.log.Pieces[n-1].To, Time: time.Unix(int64(n), 0)}
	s.snapshots[m.ID] = false
	if err := s.r.Save(ctx, m, bytes.NewReader(content(m.ID))); err != nil {
		return err
	}
	s.snapshots[m.ID] = true
	if s.last != nil {
		s.dropped[s.last.ID] = true
		if err := s.r.Drop(ctx, s.last.ID); err != nil {
			return err
		}
	}
	s.last = m
	return nil
}

func content(id uuid.UUID) []byte { return bytes.Repeat(id[:], 100) }

// check verifies what is in the remote: the pieces of the log, from the last prune on, at least those acknowledged, and
// the snapshots.
func (s *sender) check(ctx context.Context) error {
	from := s.log.Pieces[s.pruned].From.LSN
	h, err := s.r.Head(ctx)
	if err != nil || h.Number == 0 && s.acked == 0 {
		return err
	}
	at := s.pruned
	for p, err := range s.r.Read(ctx, 1, from) {
		if err != nil {
			return err
		}
		if at == len(s.log.Pieces) || p.From != s.log.Pieces[at].From || !bytes.Equal(p.Bytes, s.log.Pieces[at].Bytes) {
			return fmt.Errorf("piece %d, from %v, is not that of the log", at, p.From)
		}
		at++
	}
	if at < s.acked {
		return fmt.Errorf("%d pieces can be read, %d were acknowledged", at, s.acked)
	}
	s.acked = at // what a Head has shown is durable
	for _, err := range s.r.Read(ctx, 1, s.log.Start.LSN) {
		if err != nil && !errors.Is(err, errs.ErrTruncated) { // entries are gone only below the floor
			return err
		}
	}
	list, err := s.r.Snapshots(ctx)
	if err != nil {
		return err
	}
	listed := map[uuid.UUID]bool{}
	for i := range list {
		listed[list[i].ID] = true
		b, err := s.r.Open(ctx, list[i].ID)
		if err != nil {
			return err
		}
		got := make([]byte, b.Size())
		if _, err := b.ReadAt(got, 0); err != nil || !bytes.Equal(got, content(list[i].ID)) {
			return fmt.Errorf("snapshot %s has other bytes (%v)", list[i].ID, err)
		}
		if err := b.Close(); err != nil {
			return err
		}
	}
	for id, saved := range s.snapshots {
		if saved && !listed[id] && !s.dropped[id] {
			return fmt.Errorf("snapshot %s was saved and is missing", id)
		}
	}
	return nil
}

func newSender(log *remotetest.Log) *sender {
	ids := byte(0)
	return &sender{log: log, epoch: 1, snapshots: map[uuid.UUID]bool{}, dropped: map[uuid.UUID]bool{},
		newID: func() uuid.UUID { ids++; return uuid.UUID{ids, 1} }}
}

// The sender is killed at each operation, with and without a power cut, and with another process on the machine that
// looks, or continues from what it sees, before the power fails: what was acknowledged or seen is there, what is read
// is the log, and the next sender completes it.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	open := func(t *testing.T, fsys vfs.FS) remote.Remote {
		r, err := dir.Open(ctx, "/copy", options(fsys, func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	step := uint64(1)
	if !proofs.Long() {
		step = 7
	}
	patterns := append([]crash.Pattern{-1}, crash.Patterns()...)
	for _, present := range []int{0, 1019} { // entries before; the second case crosses into another folder
		cuts := 0
		log := remotetest.NewLog(3).Grow(present+16, 1)
		created := made(t, log, present)
		tried := patterns
		if present > 0 {
			tried = patterns[:3]
			if step = 5; !proofs.Long() {
				step = 23
			}
		}
		for at, last := uint64(1), false; !last; at += step {
			for try, pattern := range tried {
				for _, beside := range []int{0, 1, 2} { // steps of another process: it looks, and continues
					seed := at*100 + uint64(try)*2
					disk := created.Copy()
					disk.SetClock(func() time.Time { return now })
					view := disk.Process("killed")
					ops, counts := uint64(0), false
					s := newSender(log)
					s.r = open(t, wrap.New(view, func(_ *wrap.Op, call func() error) error {
						if !counts {
							return call()
						}
						if ops++; ops == at {
							disk.Kill(view)
							runtime.Goexit()
						}
						return call()
					}))
					done := make(chan error, 1)
					finished := false
					counts = true
					go func() {
						defer close(done)
						err := s.send(ctx, len(log.Pieces))
						finished = true
						done <- err
					}()
					if err := <-done; err != nil {
						t.Fatalf("operation %d: %v", at, err)
					}
					last = finished
					if cuts++; beside > 0 {
						s.r = open(t, disk.Process("beside"))
						if err := s.check(ctx); err != nil {
							t.Fatalf("operation %d: beside: %v", at, err)
						}
						if beside == 1 {
							// What it has seen must survive.
						} else if err := s.send(ctx, min(s.acked+2, len(log.Pieces))); err != nil {
							t.Fatalf("operation %d: beside: %v", at, err)
						}
					}
					if pattern >= 0 {
						disk = disk.Crash(pattern, rand.New(rand.NewPCG(seed, 5)))
					}
					s.r = open(t, disk.Process("next"))
					for _, do := range []func() error{
						func() error { return s.check(ctx) },
						func() error { return s.send(ctx, len(log.Pieces)) },
						func() error { return s.check(ctx) },
					} {
						if err := do(); err != nil {
							t.Fatalf("operation %d, pattern %v, beside %v: %v", at, pattern, beside, err)
						}
					}
					if h := remotetest.Head(t, s.r); h.At != log.End {
						t.Fatalf("operation %d, pattern %v: the head is %+v", at, pattern, h)
					}
					if n, err := s.r.Prune(ctx, 2, 0); err != nil || n > len(log.Pieces)+1 {
						t.Fatalf("operation %d, pattern %v: %d, %v", at, pattern, n, err)
					}
				}
			}
		}
		t.Logf("%d cuts, %d entries before", cuts, present)
	}
}

// A reader gets nothing of a string whose newest entry cannot be made durable.
func TestReadOfUnsynced(t *testing.T) {
	t.Parallel()
	log := remotetest.NewLog(3).Grow(3, 1)
	broken := errors.New("the disk is broken")
	r, err := dir.Open(t.Context(), "/copy", options(fault.New(made(t, log, 3).Process("reader"),
		func(op *fault.Op) error {
			if op.Kind == wrap.SyncDir {
				return broken
			}
			return nil
		}), time.Now))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for p, err := range r.Read(t.Context(), 1, log.Start.LSN) {
		if n++; !errors.Is(err, broken) {
			t.Errorf("piece from %v, %v", p.From, err)
		}
	}
	if n != 1 {
		t.Errorf("%d pieces and errors", n)
	}
}

// The folder of the newest entry is pruned while it is looked for: the copy is not empty, and not damaged.
func TestHeadBesidePrune(t *testing.T) {
	t.Parallel()
	const before = 1019
	log := remotetest.NewLog(3).Grow(1035, 1)
	disk := made(t, log, before)
	awake, err := dir.Open(t.Context(), "/copy", options(disk.Process("awake"), time.Now))
	if err != nil {
		t.Fatal(err)
	}
	slept := false
	looking, err := dir.Open(t.Context(), "/copy", options(wrap.New(disk.Process("looking"),
		func(op *wrap.Op, call func() error) error {
			err := call()
			if op.Kind == wrap.ReadDir && strings.HasPrefix(op.Path, "/copy/log") && !slept {
				slept = true
				remotetest.Append(t, awake, log.Pieces[before:]...)
				if _, perr := awake.Prune(t.Context(), 1, log.Pieces[1032].To.LSN); perr != nil {
					t.Error(perr)
				}
			}
			return err
		}), time.Now))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := looking.Head(t.Context()); err != nil || h.At != log.End || !slept {
		t.Errorf("the head beside a prune is %+v, %v", h, err)
	}
}

// made returns a disk on which the remote was created and has the first pieces of a log.
func made(t *testing.T, log *remotetest.Log, pieces int) *crash.Disk {
	disk := crash.New()
	r, err := dir.Create(t.Context(), "/copy", options(disk.Process("maker"), time.Now))
	if err != nil {
		t.Fatal(err)
	}
	if pieces > 0 {
		if _, err := r.Begin(t.Context(), log.Anchor(t, remote.Position{})); err != nil {
			t.Fatal(err)
		}
		remotetest.Append(t, r, log.Pieces[:pieces]...)
	}
	return disk
}

func options(fsys vfs.FS, clock func() time.Time) *dir.Options {
	n := byte(0)
	random := make([]byte, 1<<20)
	for i := range random {
		if i%16 == 0 {
			n++
		}
		random[i] = n ^ byte(i>>12)
	}
	host := fsys.Host()
	random = append([]byte(fmt.Sprintf("%016d", host.PID)), random...)
	return &dir.Options{FS: fsys, Clock: clock, Random: bytes.NewReader(random),
		Sleep: func(context.Context, time.Duration) error { return nil }}
}

// Every operation of a sender fails once, before or after it is done: the error is returned, nothing that was
// acknowledged is lost, and the sender continues.
func TestFaultsAnywhere(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	log := remotetest.NewLog(3).Grow(16, 1)
	broken := errors.New("the disk is broken")
	step := uint64(1)
	if !proofs.Long() {
		step = 5
	}
	created := made(t, log, 0)
	for at, last := uint64(1), false; !last; at += step {
		for _, after := range []bool{false, true} {
			process := created.Copy().Process("sender")
			ops, counts := uint64(0), false
			r, err := dir.Open(ctx, "/copy", options(fault.New(process, func(op *fault.Op) error {
				if !counts {
					return nil
				}
				if ops++; ops != at || op.Kind == wrap.Close {
					return nil
				}
				if after && op.Kind != wrap.Sync && op.Kind != wrap.Datasync {
					return fault.After(broken)
				}
				return broken
			}), time.Now))
			if err != nil {
				t.Fatal(err)
			}
			counts = true
			s := newSender(log)
			s.r = r
			for {
				err := s.send(ctx, len(log.Pieces))
				if err == nil {
					break
				}
				if !errors.Is(err, broken) {
					t.Fatalf("operation %d, after %v: %v", at, after, err)
				}
			}
			counts, last = false, ops < at
			if err := s.check(ctx); err != nil {
				t.Fatalf("operation %d, after %v: %v", at, after, err)
			}
		}
	}
}
