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

const ExpiryName = "expiry" // in wal/

// SweepNote is what wal/expiry says, a line each:
//
//	the time of day at which something was over, RFC 3339
//	in which boot of the machine that was noted, 32 digits, a space, and how long after
//	its start, as time.Duration writes it; left out where that is not known
type SweepNote struct {
	Cut  time.Time // zero: there is none
	Boot [2]uint64 // zero: not known
	Up   time.Duration
}

// Text is what the file has.
func (n *SweepNote) Text() []byte {
	b := fmt.Appendln(nil, n.Cut.UTC().Format(time.RFC3339Nano))
	if n.Boot != [2]uint64{} {
		b = fmt.Appendf(b, "%016x%016x %v\n", n.Boot[0], n.Boot[1], n.Up)
	}
	return b
}

// ParseSweepNote reads a note. One that cannot be read says nothing: the hour begins then.
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

// sighting is when this process saw a note for the first time.
type sighting struct {
	note SweepNote
	At   time.Time
}

// Passed is how much time has gone by since a note was made, by a clock that nobody
// sets; false when it was made in another boot. Where the host has a clock of its own,
// that one is believed.
func (r *Retention) Passed(n *SweepNote) (time.Duration, bool) {
	s := &r.Sweeper
	now := r.Engine.Env.Clock()
	if boot, up := r.Engine.Env.FS.Host().Boot, r.Uptime.Uptime; up != nil && boot != [2]uint64{} {
		passed := up() - n.Up
		return passed, n.Boot == boot && passed >= 0
	}
	if !r.Engine.Env.OwnClock {
		return now.Sub(n.Cut), true
	}
	if s.Seen.note != *n {
		s.Seen = sighting{*n, now}
	}
	return now.Sub(s.Seen.At), true // time.Now: both have a reading that does not jump
}

// SweepNotePath is where the note stands.
func (r *Retention) SweepNotePath() string { return filepath.Join(r.Engine.Env.Dir, "wal", ExpiryName) }

// ReadSweepNote reads wal/expiry.
func (r *Retention) ReadSweepNote() (n SweepNote, err error) {
	b, err := vfs.ReadFile(r.Engine.Env.FS, r.SweepNotePath(), 200)
	if errors.Is(err, fs.ErrNotExist) || engine.NotOurs(err) {
		return n, nil
	}
	if err != nil {
		return n, r.Engine.Env.IOError("reading", r.SweepNotePath(), err)
	}
	return ParseSweepNote(string(b)), nil
}

// NoteSweep writes wal/expiry, unless somebody is flushing: then the next sweep does.
func (r *Retention) NoteSweep(cut time.Time) error {
	held, err := r.Engine.Log.TryLockFlush()
	if err != nil || held == nil {
		return err
	}
	defer held.Unlock()
	n := SweepNote{Cut: cut}
	if up := r.Uptime.Uptime; up != nil {
		n.Boot, n.Up = r.Engine.Env.FS.Host().Boot, up()
	}
	temp := filepath.Join(r.Engine.Env.Dir, "tmp", ExpiryName+"."+r.Engine.Token)
	if err := vfs.WriteDurable(r.Engine.Env.FS, temp, r.SweepNotePath(), n.Text(), r.Engine.Env.FileMode); err != nil {
		return r.Engine.Env.IOError("writing", r.SweepNotePath(), err)
	}
	return nil
}
