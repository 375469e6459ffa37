package sender_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/remotetest"
	"github.com/varve-db/varve/remote/sender"
	"github.com/varve-db/varve/segment"
)

// count returns how many entries of a key a remote has.
func (l *local) count(r remote.Remote, key string) (n int) {
	l.t.Helper()
	epochs, err := r.Epochs(l.t.Context())
	l.check(err)
	for _, e := range epochs {
		for p, err := range r.Read(l.t.Context(), e.Number, e.From.LSN) {
			l.check(err)
			at, _ := p.At()
			n += l.log.Geometry.EraseIn(bytes.Clone(p.Bytes), at, func(_ segment.LSN, k string, v []byte) bool {
				return k == key && len(v) >= 8
			}, nil).Wanted
		}
	}
	return n
}

// inLog returns how many entries of a key the log has.
func (l *local) inLog(key string) (n int) {
	for number, b := range l.files {
		at := l.log.Geometry.Start(number)
		n += l.log.Geometry.EraseIn(bytes.Clone(b), at, func(_ segment.LSN, k string, v []byte) bool {
			return k == key && len(v) >= 8
		}, nil).Wanted
	}
	return n
}

// Purges wait for others, for a day at most: meanwhile the epoch continues. Then one epoch has all of them.
func TestPurgesGather(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *local, s func() *sender.Sender) *sender.Sender{
		"a day has passed": func(l *local, s func() *sender.Sender) *sender.Sender {
			l.now = l.now.Add(13 * time.Hour)
			return s()
		},
		"the clock was set back": func(l *local, s func() *sender.Sender) *sender.Sender {
			l.now = time.Unix(0, 0)
			return s()
		},
		"the user does not wait": func(l *local, s func() *sender.Sender) *sender.Sender {
			l.erase = l.id().Epoch
			return s()
		},
		"another log has begun": func(l *local, s func() *sender.Sender) *sender.Sender {
			l.repair()
			return s()
		},
	} {
		t.Run(name, func(t *testing.T) {
			process := crash.New().Process("store")
			l, r := newLocal(t, process, 1), place(t, process)
			l.gather = 0
			k := bind(t, r, l)
			again := func() *sender.Sender { return start(t, r, l, k) }
			s := again()
			l.grow(60)
			must(t, s.Round(t.Context()))
			must(t, s.Maintain(t.Context()))
			for i, key := range []string{"m7", "m9"} {
				l.purge(key)
				l.grow(3)
				s = again() // a killed sender remembers
				must(t, s.Round(t.Context()))
				must(t, s.Maintain(t.Context()))
				sent, ok, err := l.past.Sent(l.durable)
				if !ok || err != nil || sent.Mark != l.log.End || sent.ID != l.id() {
					t.Fatalf("purge %d: the archive keeps the log: %+v %v", i, sent, err)
				}
				if head := remotetest.Head(t, r); head.Epoch != 1 || head.At != l.log.End {
					t.Fatalf("purge %d: %+v", i, head)
				}
				l.now = l.now.Add(11 * time.Hour)
			}
			if l.count(r, "m7") == 0 || l.count(r, "m9") == 0 {
				t.Fatal("the test sees nothing")
			}
			s = end(l, again)
			must(t, s.Round(t.Context()))
			must(t, s.Maintain(t.Context()))
			head := remotetest.Head(t, r)
			n := max(0, l.count(r, "m7")-l.inLog("m7")) + max(0, l.count(r, "m9")-l.inLog("m9")) // some were written since
			if n > 0 || head.Epoch != 2 || k.b.Purged != (sender.Gathered{}) ||
				k.b.Snapshot.Erase {
				t.Errorf("%d purged entries are left, %+v, %+v", n, head, k.b)
			}
			l.restorable(r, head)
			l.compare(r)
		})
	}
}

// Snapshots from before what was purged stay, and the pieces that were sent again complete them, whichever step fails.
func TestPurgedKeepsEarlierSnapshots(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	l.whole = true
	u := &undropped{Remote: r}
	k := bind(t, r, l)
	s := start(t, u, l, k)
	for range 4 {
		l.grow(40)
		must(t, s.Round(t.Context()))
		must(t, s.Maintain(t.Context()))
		l.now = l.now.Add(25 * time.Hour)
	}
	old, err := r.Snapshots(t.Context())
	if err != nil || len(old) != 4 {
		t.Fatal(old, err)
	}
	for i, last := range []int{2, 1} { // the second purge erases what is older
		l.purge([]string{"m7", "m9"}[i])
		l.clean = old[last-1].End.LSN
		must(t, s.Round(t.Context()))
		u.broken = true
		if err := s.Maintain(t.Context()); err == nil {
			t.Fatal("the test breaks nothing")
		}
		u.broken = false
		s = start(t, u, l, k)
		must(t, s.Maintain(t.Context()))
		list, err := r.Snapshots(t.Context())
		must(t, err)
		kept := slices.DeleteFunc(slices.Clone(list), func(m remote.Snapshot) bool { return m.Epoch > 1 })
		if len(kept) != last || kept[last-1].ID != old[last-1].ID {
			t.Fatalf("purge %d: of the snapshots before it %d are left, want %d", i, len(kept), last)
		}
		v, err := remote.Verify(t.Context(), r, true)
		if err != nil || !v.Restorable || len(v.Damage) > 0 || v.Epochs != 1 {
			t.Fatalf("%+v, %v", v, err)
		}
		for _, m := range v.Snapshots {
			if m.To != remotetest.Head(t, r).At {
				t.Errorf("the pieces complete snapshot %s of epoch %d up to %v only", m.ID, m.Epoch, m.To)
			}
		}
		if n := l.count(r, "m7"); n > 0 {
			t.Errorf("%d purged entries are left", n)
		}
		l.compare(r)
	}
	// A snapshot of a log that is not this one is never kept.
	l.clean = 1 << 62
	l.repair()
	l.purge("m3")
	must(t, s.Round(t.Context()))
	must(t, s.Maintain(t.Context()))
	if list, err := r.Snapshots(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// When an epoch is begun again with an earlier part of the log, the record of what was sent says so before the first
// piece is sent: the archive keeps that part.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	process := crash.New().Process("store")
	l, r := newLocal(t, process, 1), place(t, process)
	l.whole = true
	f := &unappended{Remote: r}
	k := bind(t, r, l)
	l.grow(60)
	must(t, start(t, f, l, k).Round(t.Context()))
	l.gather = 0
	l.purge("m7")
	s := start(t, f, l, k)
	must(t, s.Round(t.Context())) // records how far the log was sent that the purge has begun
	l.now = l.now.Add(24 * time.Hour)
	f.broken = true
	if err := s.Round(t.Context()); err == nil {
		t.Fatal("the test breaks nothing")
	}
	head := remotetest.Head(t, r)
	sent, ok, err := l.past.Sent(l.durable)
	if head.Epoch != 2 || !ok || err != nil || sent.Mark != head.At {
		t.Errorf("%+v, but %+v was recorded as sent, %v", head, sent, err)
	}
}

// unappended is a remote whose Append fails.
type unappended struct {
	remote.Remote
	broken bool
}

func (u *unappended) Append(ctx context.Context, p *remote.Piece) error {
	if u.broken {
		return errFlaky
	}
	return u.Remote.Append(ctx, p)
}
