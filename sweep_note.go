package varve

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

const expiryName = "expiry" // in wal/

// sweepNote is what wal/expiry says, a line each:
//
//	the time of day at which something was over, RFC 3339
//	in which boot of the machine that was noted, 32 digits, a space, and how long after
//	its start, as time.Duration writes it; left out where that is not known
type sweepNote struct {
	cut  time.Time // zero: there is none
	boot [2]uint64 // zero: not known
	up   time.Duration
}

func (n *sweepNote) text() []byte {
	b := fmt.Appendln(nil, n.cut.UTC().Format(time.RFC3339Nano))
	if n.boot != [2]uint64{} {
		b = fmt.Appendf(b, "%016x%016x %v\n", n.boot[0], n.boot[1], n.up)
	}
	return b
}

// parseSweepNote reads a note. One that cannot be read says nothing: the hour begins then.
func parseSweepNote(text string) (n sweepNote) {
	first, second, _ := strings.Cut(text, "\n")
	cut, err := time.Parse(time.RFC3339Nano, first)
	if err != nil {
		return n
	}
	n.cut = cut
	boot, up, _ := strings.Cut(strings.TrimSuffix(second, "\n"), " ")
	after, err := time.ParseDuration(up)
	if b, herr := hex.DecodeString(boot); err == nil && herr == nil && len(b) == 16 {
		for i, v := range b {
			n.boot[i/8] = n.boot[i/8]<<8 | uint64(v)
		}
		n.up = after
	}
	return n
}

// sighting is when this process saw a note for the first time.
type sighting struct {
	note sweepNote
	at   time.Time
}

// passed is how much time has gone by since a note was made, by a clock that nobody
// sets; false when it was made in another boot. Where the host has a clock of its own,
// that one is believed.
func (s *sweeper) passed(st *Store, n *sweepNote) (time.Duration, bool) {
	now := st.engine.Env.Clock()
	if boot, up := st.engine.Env.FS.Host().Boot, st.working.Uptime; up != nil && boot != [2]uint64{} {
		passed := up() - n.up
		return passed, n.boot == boot && passed >= 0
	}
	if !st.engine.Env.OwnClock {
		return now.Sub(n.cut), true
	}
	if s.seen.note != *n {
		s.seen = sighting{*n, now}
	}
	return now.Sub(s.seen.at), true // time.Now: both have a reading that does not jump
}

func (st *Store) sweepNotePath() string { return filepath.Join(st.engine.Env.Dir, "wal", expiryName) }

// readSweepNote reads wal/expiry.
func (st *Store) readSweepNote() (n sweepNote, err error) {
	b, err := vfs.ReadFile(st.engine.Env.FS, st.sweepNotePath(), 200)
	if errors.Is(err, fs.ErrNotExist) || engine.NotOurs(err) {
		return n, nil
	}
	if err != nil {
		return n, st.engine.Env.IOError("reading", st.sweepNotePath(), err)
	}
	return parseSweepNote(string(b)), nil
}

// noteSweep writes wal/expiry, unless somebody is flushing: then the next sweep does.
func (st *Store) noteSweep(cut time.Time) error {
	ok, err := st.engine.Log.TryLockFlush()
	if err != nil || !ok {
		return err
	}
	defer st.engine.Log.UnlockFlush()
	n := sweepNote{cut: cut}
	if up := st.working.Uptime; up != nil {
		n.boot, n.up = st.engine.Env.FS.Host().Boot, up()
	}
	temp := filepath.Join(st.engine.Env.Dir, "tmp", expiryName+"."+st.engine.Token)
	if err := vfs.WriteDurable(st.engine.Env.FS, temp, st.sweepNotePath(), n.text(), st.engine.Env.FileMode); err != nil {
		return st.engine.Env.IOError("writing", st.sweepNotePath(), err)
	}
	return nil
}
