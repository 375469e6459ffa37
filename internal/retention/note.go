package retention

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/vfs"
)

// The names of the files in wal/ that note when something was old enough to be deleted, which is done an hour
// later.
const (
	ExpiryName = "expiry" // the file for memories that have expired, or are older than max_age
	AgedName   = "aged"   // the file for copies of the log that are older than history_days
)

// SweepNote records a time of day at which something was old enough to be deleted. Up is how long after the start of
// the machine the note was made. The note's file has two lines:
//
//	the time of day at which something was expired, RFC 3339
//	the boot of the machine in which the note was made, 32 digits, a space, and how long after
//	its start, as time.Duration writes it; omitted if unknown
type SweepNote struct {
	Cut  time.Time // the time of day; zero: there is no note
	Boot [2]uint64 // id of the boot of the machine in which the note was made; zero: unknown
	Up   time.Duration
}

// Text returns the content of the note's file.
func (n *SweepNote) Text() []byte {
	b := fmt.Appendln(nil, n.Cut.UTC().Format(time.RFC3339Nano))
	if n.Boot != [2]uint64{} {
		b = fmt.Appendf(b, "%016x%016x %v\n", n.Boot[0], n.Boot[1], n.Up)
	}
	return b
}

// ParseSweepNote parses the content of a note's file. If the content is invalid, it returns the zero SweepNote. For
// the zero note, Hour.judge begins a new hour.
func ParseSweepNote(text string) (n SweepNote) {
	first, second, _ := strings.Cut(text, "\n")
	cut, err := time.Parse(time.RFC3339Nano, first)
	if err != nil {
		return n
	}
	n.Cut = cut
	boot, up, _ := strings.Cut(strings.TrimSuffix(second, "\n"), " ")
	after, err := time.ParseDuration(up)
	if b, herr := hex.DecodeString(boot); err == nil && herr == nil && len(b) == 16 {
		for i, v := range b {
			n.Boot[i/8] = n.Boot[i/8]<<8 | uint64(v)
		}
		n.Up = after
	}
	return n
}

// Hour measures the hour that must pass after data was first found old enough before the data is deleted. All processes
// use the same note, which contains a time of day; see the top of sweep.go.
type Hour struct {
	r    *Retention
	name string
	// when this process first saw the note; guarded by the caller's lock (of the sweeper, or flush.lock)
	Seen sighting
}

// sighting records the time at which this process first saw a note, measured by the clock Scopes.Mono.
type sighting struct {
	note SweepNote
	At   time.Duration
}

// Passed returns how much time has passed since a note was made, by the uptime of the machine, which cannot be set. It
// returns false if the note was made before the machine was last started. If the uptime is unknown, it returns the
// time since this process first saw the note.
func (h *Hour) Passed(n *SweepNote) (time.Duration, bool) {
	if boot, up := h.r.engine.Env().FS.Host().Boot, h.r.uptime.Tune().Uptime; up != nil && boot != [2]uint64{} {
		passed := up() - n.Up
		return passed, n.Boot == boot && passed >= 0
	}
	now := h.r.uptime.Mono()
	if h.Seen.note != *n {
		h.Seen = sighting{*n, now}
	}
	return now - h.Seen.At, true
}

// Path returns the path of the note's file.
func (h *Hour) Path() string { return filepath.Join(h.r.engine.Env().Dir, "wal", h.name) }

// Read returns the note. It returns the zero SweepNote if the file is missing or its content is invalid.
func (h *Hour) Read() (n SweepNote, err error) {
	b, err := vfs.ReadFile(h.r.engine.Env().FS, h.Path(), 200)
	if errors.Is(err, fs.ErrNotExist) || engine.NotOurs(err) {
		return n, nil
	}
	if err != nil {
		return n, h.r.engine.Env().IOError("reading", h.Path(), err)
	}
	return ParseSweepNote(string(b)), nil
}

// Note writes a note with the time of day cut. If another process is flushing, Note writes nothing, and the next sweep
// writes the note.
func (h *Hour) Note(cut time.Time) error {
	held, err := h.r.engine.Log().TryLockFlush()
	if err != nil || held == nil {
		return err
	}
	defer held.Unlock()
	return h.write(cut)
}

// write writes a note with the time of day cut. The caller holds flush.lock.
func (h *Hour) write(cut time.Time) error {
	n := SweepNote{Cut: cut}
	if up := h.r.uptime.Tune().Uptime; up != nil {
		n.Boot, n.Up = h.r.engine.Env().FS.Host().Boot, up()
	}
	temp := filepath.Join(h.r.engine.Env().Dir, "tmp", h.name+"."+h.r.engine.Token())
	if err := vfs.WriteDurable(h.r.engine.Env().FS, temp, h.Path(), n.Text(), h.r.engine.Env().FileMode); err != nil {
		return h.r.engine.Env().IOError("writing", h.Path(), err)
	}
	return nil
}

// judge reports in over whether the hour that began with note is over at the time of day now. If over is true,
// everything that was old enough at note.Cut may be deleted. If over is false, renew is the time of day for a new
// note; a zero renew means that the note stays.
func (h *Hour) judge(note *SweepNote, now time.Time) (over bool, renew time.Time) {
	if note.Cut.IsZero() || note.Cut.After(now) {
		return false, now // immediately; otherwise a second jump would find its hour over
	}
	passed, ok := h.Passed(note)
	switch {
	case now.Sub(note.Cut) < engine.ClockGrace:
	case !ok:
		return false, note.Cut // the hour begins in this boot
	default:
		return passed >= engine.ClockGrace, time.Time{}
	}
	return false, time.Time{}
}

// HistoryCut returns the time of day from which the age of old history is computed. It is a time, at least an hour ago,
// at which history was already too old; zero if there is no such time yet. The caller holds flush.lock. old reports
// whether history is too old at the time of day now.
//
// HistoryCut replaces a note of a time in the future even if nothing is too old: otherwise a clock that jumps ahead
// again, hours later, would find that the hour of that note has passed.
func (r *Retention) HistoryCut(now time.Time, old bool) time.Time {
	h := &r.aged
	note, err := h.Read()
	if err == nil && (old || note.Cut.After(now)) {
		over, renew := h.judge(&note, now)
		if over {
			renew = now // the next hour
		}
		if !renew.IsZero() {
			err = h.write(renew)
		}
		if over && err == nil {
			return note.Cut
		}
	}
	if err != nil {
		r.engine.Env().Logger.Warn("old history is not removed yet: the note of its age cannot be written", "err", err)
	}
	return time.Time{}
}
