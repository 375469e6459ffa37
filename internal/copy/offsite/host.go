package offsite

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sender"
)

// Opener opens the remote at a URL.
type Opener func(ctx context.Context, url string) (remote.Remote, error)

// Host runs the sender of an open store as long as a place for the store's copy is recorded on this machine. Of all
// processes of the machine, only one sends.
type Host struct {
	c HostConfig

	mu     sync.Mutex
	err    error  // reason why this process does not send; nil if this or another process sends
	logged string // text of the last warning; the same warning is not logged again

	recorded Status // status that was written last; used by one goroutine at a time
}

// HostConfig has the parts of a Host.
type HostConfig struct {
	Places  *Places
	Source  func(ctx context.Context) (*Source, error)
	Open    Opener
	Sender  sender.Options
	Every   time.Duration // pause between two checks of the place; 0 means 2 s
	Logger  *slog.Logger
	Changed func(err error) // called when sending stops, fails for the first time, or works again (nil)
}

// NewHost returns a Host.
func NewHost(c HostConfig) *Host {
	if c.Every == 0 {
		c.Every = 2 * time.Second
	}
	return &Host{c: c}
}

// Err returns the reason why this process does not send; nil if this process sends, or if another process may be
// sending.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *Host) note(err error) {
	h.mu.Lock()
	was := h.err
	h.err = err
	if err == nil {
		h.logged = ""
	}
	h.mu.Unlock()
	if (was == nil) != (err == nil) {
		h.c.Changed(err)
	}
}

// warn logs why this process does not send, once for each reason.
func (h *Host) warn(err error) {
	h.mu.Lock()
	was := h.logged
	h.logged = err.Error()
	h.mu.Unlock()
	if was != err.Error() {
		h.c.Logger.Warn("the log is not sent to its copy", "err", err)
	}
}

// mostPause is the longest pause after an error.
const mostPause = time.Minute

// Run sends the store's changes to the copy until ctx ends. After an error it pauses and tries again; the pause grows
// up to mostPause.
func (h *Host) Run(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		place, err := h.c.Places.Load(ctx)
		if errors.Is(err, errs.ErrNotFound) || err == nil && !place.Sends() {
			h.note(nil)
			if pause = 0; h.sleep(ctx, h.c.Every) != nil {
				return
			}
			continue
		}
		if err == nil {
			err = h.follow(ctx, place)
		}
		if ctx.Err() != nil {
			return
		}
		if h.Err() == nil { // it worked until now
			pause = 0
		}
		h.note(err)
		if err != nil {
			h.warn(err)
			pause = min(max(2*pause, h.c.Every), mostPause)
			h.waitForChange(ctx, place, err, pause)
		}
	}
}

func (h *Host) sleep(ctx context.Context, d time.Duration) error { return h.c.Sender.Sleep(ctx, d) }

// waitForChange waits after sending has failed with the error cause. If cause matches sender.ErrStopped, it waits
// until the place changes or is removed; otherwise it waits at most for the time pause. A *sender.ClaimedError or a
// *sender.LostError does not count as stopped: another disk may be mounted at the place for a while, and the copy may
// come back.
func (h *Host) waitForChange(ctx context.Context, place Place, cause error, pause time.Duration) {
	lost, claimed := (*sender.LostError)(nil), (*sender.ClaimedError)(nil)
	stopped := errors.Is(cause, sender.ErrStopped) && !errors.As(cause, &lost) && !errors.As(cause, &claimed)
	for waited := time.Duration(0); stopped || waited < pause; waited += h.c.Every {
		if h.sleep(ctx, h.c.Every) != nil {
			return
		}
		if now, err := h.c.Places.Load(ctx); err == nil && now != place || errors.Is(err, errs.ErrNotFound) {
			return
		}
	}
}

// follow sends the store's changes to the copy at a place, until the place changes, ctx ends or sending stops. If the
// remote cannot be opened, for example because its credentials are missing, follow does not take follow.lock: another
// process may have the credentials.
func (h *Host) follow(ctx context.Context, place Place) (err error) {
	o := h.c.Sender
	o.Erase = place.Erase
	r, err := h.c.Open(ctx, place.URL)
	if err != nil {
		return err
	}
	o.Recipients = RecipientsOf(r)
	defer func() { err = errors.Join(err, r.Close()) }()
	src, err := h.c.Source(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	var mu sync.Mutex
	var s *sender.Sender
	watching.Go(func() {
		for h.sleep(ctx, h.c.Every) == nil {
			if !h.stays(ctx, place, o.Recipients) {
				cancel()
				return
			}
			mu.Lock()
			now := s
			mu.Unlock()
			if now != nil {
				h.record(now, true)
			}
		}
	})
	h.recorded = Status{} // another process may have recorded its own since
	if sends, err := src.s.Log.Processes().Followed(); err == nil && sends {
		h.note(nil)
	}
	lock, err := src.s.Log.Processes().Follow(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !h.stays(ctx, place, o.Recipients) { // it may have changed while this process waited
		return nil
	}
	made, err := sender.New(ctx, r, src, h.c.Places.Keeper(), o)
	if err != nil {
		return err
	}
	mu.Lock()
	s = made
	mu.Unlock()
	h.record(s, true)
	err = s.Run(ctx)
	cancel()
	watching.Wait()
	h.record(s, false)
	if taken := (*sender.TakenError)(nil); errors.As(err, &taken) {
		err = errors.Join(err, s.Forget()) // another machine's copy does not need the log of this one
	}
	if ctx.Err() != nil && !errors.Is(err, sender.ErrStopped) {
		return nil
	}
	return err
}

// stays reports whether the place and the recipients of the copy are still those for which it was opened.
func (h *Host) stays(ctx context.Context, place Place, recipients string) bool {
	now, err := h.c.Places.Load(ctx)
	if err != nil || now != place {
		return false
	}
	to, err := h.c.Places.Fingerprint()
	return err == nil && to == recipients
}

// recordEvery is the interval at which record writes a status in which only the times have changed.
const recordEvery = time.Minute

// record records the status of the sender for other processes, if more than the times has changed since the last
// record, or if the last record is older than recordEvery.
func (h *Host) record(s *sender.Sender, sending bool) {
	st, _ := s.Status()
	if !errors.Is(st.Err, context.Canceled) && !(st.Success.IsZero() && st.Failure.IsZero()) {
		h.note(st.Err)
	}
	if _, err := h.c.Places.Load(context.Background()); err != nil {
		return // it was removed meanwhile
	}
	now := statusOf(&st, h.c.Places.FS.Host().PID, h.c.Sender.Clock())
	now.Sending = sending
	if now.sameExceptTimes(&h.recorded) && now.Time.Sub(h.recorded.Time).Abs() < recordEvery {
		return
	}
	if err := h.c.Places.write("status", now); err != nil {
		h.c.Logger.Warn("recording the state of the copy", "err", err)
		return
	}
	h.recorded = now
}

// sameExceptTimes reports whether two records are equal except for the times of rounds.
func (s Status) sameExceptTimes(t *Status) bool {
	u := *t
	s.Time, s.Success, s.Failure = u.Time, u.Success, u.Failure
	if s.Snapshot != nil && u.Snapshot != nil && s.Snapshot.Equal(*u.Snapshot) {
		s.Snapshot = u.Snapshot
	}
	return s == u
}

func statusOf(st *sender.Status, pid int, now time.Time) Status {
	some := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC()
		return &t
	}
	out := Status{PID: pid, Time: now.UTC(), Place: st.Place, Epoch: st.Epoch, Sent: st.Sent.LSN,
		Success: some(st.Success), Failure: some(st.Failure), Snapshot: some(st.Snapshot), Reason: st.Reason,
		Stopped: errors.Is(st.Err, sender.ErrStopped)}
	if st.Err != nil {
		out.Error = st.Err.Error()
	}
	if st.Gap != nil {
		out.Gap = st.Gap.Err.Error()
	}
	if st.SnapshotErr != nil {
		out.Snapping = st.SnapshotErr.Error()
	}
	return out
}
