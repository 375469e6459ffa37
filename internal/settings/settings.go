package settings

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Settings are the settings of an open store, as last read.
type Settings struct {
	env *env.Env
	now atomic.Pointer[Config]

	unknown atomic.Bool // set if err is not nil
	exists  atomic.Bool // the store has had the file, valid or not
	good    atomic.Bool // Now was read from the file, and does not consist of defaults

	mu   sync.Mutex
	info vfs.Info // size, time and inode of the file when it was last read
	err  error    // the reason why the file, or members of it, are not valid

	asOf atomic.Uint64 // position of the entry of the log after which the file was read
}

// New returns settings with the defaults, until Load, Make or Use is called.
func New(e *env.Env) *Settings {
	s := &Settings{env: e}
	s.now.Store(&Config{Format: Format})
	return s
}

// Now returns the settings in force. They are shared and must not be changed.
func (s *Settings) Now() *Config { return s.now.Load() }

// History returns the amount of history that may be kept now, in bytes and age; see Config.History. Both are unlimited
// while the settings are unknown.
func (s *Settings) History() (bytes int64, age time.Duration) {
	if s.Unknown() {
		return math.MaxInt64, 0
	}
	return s.Now().History(s.env.System.ArchiveBytes)
}

// Unsent returns the number of bytes beyond those of History that may be kept for a copy of the store elsewhere; see
// Config.Unsent.
func (s *Settings) Unsent() int64 { return s.Now().Unsent() }

// Unknown reports whether the file, or a member of it, is not valid. While it returns true, the store must not remove
// anything because of a setting, because neither the defaults nor the last valid settings are what the user has set.
func (s *Settings) Unknown() bool { return s.unknown.Load() }

// Exists reports whether the store had a config.json when this process last read it.
func (s *Settings) Exists() bool { return s.exists.Load() }

// fail sets the reason why the file is not valid, or clears it if err is nil. The caller holds mu.
func (s *Settings) fail(err error) {
	s.err = err
	s.unknown.Store(err != nil)
}

// Err returns the reason why the file, or members of it, are not valid; nil if all are valid.
func (s *Settings) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Load reads the file when the store is opened; see Read for the results. If there is no error, the settings that were
// read apply. Otherwise the settings stay as they are; the caller may pass the Config and the error to Use.
func (s *Settings) Load() (*Config, error) {
	c, info, err := Read(s.env.FS, s.env.Dir)
	s.mu.Lock()
	s.info = info
	s.mu.Unlock()
	if err == nil {
		s.now.Store(c)
		s.good.Store(true)
	}
	s.exists.Store(err == nil || c != nil)
	return c, err
}

// Use makes c the settings that apply. If a file has valid and invalid members, c has the valid ones, and err is about
// the invalid ones. If c is nil, no member is valid, and the defaults apply.
func (s *Settings) Use(c *Config, err error) {
	if c == nil {
		c = new(Config)
	}
	c.Format = Format
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Store(c)
	s.exists.Store(!errors.Is(err, ErrMissing))
	s.fail(err)
}

// Make writes config.json for a new store, and reads it. The file shows the defaults of the settings that users change
// most (see Config.WithDefaults).
func (s *Settings) Make() error {
	c := &Config{Format: Format}
	if err := s.write(c.WithDefaults()); err != nil {
		return err
	}
	if _, err := s.Load(); err != nil {
		return s.env.IOError("reading", s.path(), err)
	}
	return nil
}

// Update reads the file, calls change with the settings, and writes the result to the file. The caller holds
// flush.lock, so that no other process changes the file between reading and writing. If change returns an error,
// Update returns it and writes nothing. An invalid member of the file gets its default. If that default would cause
// data to be removed, change has to set the member; otherwise Update fails.
func (s *Settings) Update(_ *wal.Held, change func(*Config) error) error {
	c := s.Now().Clone() // the last good one
	// Two changes may result in the same size and, if the clock of the file system is coarse, in the
	// same time.
	read, _, err := Read(s.env.FS, s.env.Dir)
	switch {
	case errors.Is(err, errs.ErrNewerFormat):
		return err // another process wrote it, and knows its format
	case read != nil:
		c = *read // its valid part, as on opening
	case err != nil && env.Passing(err):
		return s.env.IOError("reading", s.path(), err)
	case err != nil && s.Unknown() && !s.good.Load():
		return fmt.Errorf("%w: the file cannot be read, so it is not replaced by the defaults: %s", s.Err(), rebuild)
	}
	was := c.Clone()
	if err := change(&c); err != nil {
		return err
	}
	if read != nil && err != nil {
		if name := unset(err, &was, &c); name != "" {
			return fmt.Errorf("%w: correct config.json, or %s", err, instead(name))
		}
	}
	c.Format = Format
	if err := c.Validate(); err != nil {
		return err
	}
	if err := s.write(&c); err != nil {
		return err
	}
	s.mu.Lock()
	s.info = vfs.Info{}
	s.mu.Unlock()
	s.Reread()
	return nil
}

// Reread reads the file again if the file has changed. The result is false if the file could not be inspected or read
// now; then the settings that were read last still apply, and a later call tries again.
func (s *Settings) Reread() bool {
	info, err := s.env.FS.Stat(s.path())
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) && s.Exists() {
		if s.err == nil {
			s.tell(ErrMissing, "the last valid settings apply")
		}
		s.info = vfs.Info{}
		s.fail(ErrMissing)
		return true
	}
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	// Two writes in quick succession may have the same time.
	if was := &s.info; info.Size == was.Size && info.Mtime.Equal(was.Mtime) && info.Ino == was.Ino {
		return true
	}
	c, info, err := Read(s.env.FS, s.env.Dir)
	told := s.err != nil
	s.fail(err)
	unread := err != nil && env.Passing(err) && !errors.Is(err, errs.ErrNewerFormat)
	if !unread {
		s.info = info
	}
	if err != nil {
		if !unread || !told {
			s.tell(err, "")
		}
		return !unread
	}
	s.now.Store(c)
	s.good.Store(true)
	s.exists.Store(true)
	return true
}

// tell reports, in the log and to the host, that the file is not valid. note describes what the store does until the
// file is corrected.
func (s *Settings) tell(err error, note string) {
	s.env.Logger.Warn("config.json is not valid; the last valid settings apply, and the store removes nothing until "+
		"the file is valid", "err", err)
	s.env.Event(env.Event{Kind: env.EventConfig, Path: Name, Note: note, Err: err})
}

// Gone reports whether the file does not exist. One possible reason is that git has checked out a branch that does not
// have the store. So files of documents must not be restored then.
func (s *Settings) Gone() bool {
	_, err := s.env.FS.Stat(s.path())
	return errors.Is(err, fs.ErrNotExist)
}

// AsOf reads the file again if this was not done yet for the log entry at position entry, which records a change of
// the file. The file counts as read only when the reading has ended: otherwise another goroutine that calls AsOf at
// the same time would still use the previous settings.
func (s *Settings) AsOf(entry uint64) {
	if s.asOf.Load() != entry && s.Reread() {
		s.asOf.Store(entry)
	}
}

func (s *Settings) path() string { return filepath.Join(s.env.Dir, Name) }

func (s *Settings) write(c *Config) error {
	temp, err := Scratch(s.env, Name)
	if err != nil {
		return err
	}
	if err := Write(s.env.FS, s.env.Dir, temp, c, s.env.FileMode); err != nil {
		return s.env.IOError("writing", s.path(), err)
	}
	return nil
}

// Scratch returns a temporary name for a file of the store that no other process uses: several processes
// may create one store at once.
func Scratch(e *env.Env, name string) (string, error) {
	var b [6]byte
	if err := e.Random(b[:]); err != nil {
		return "", err
	}
	return filepath.Join(e.Dir, name+"."+hex.EncodeToString(b[:])+".new"), nil
}
