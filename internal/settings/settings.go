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

// Settings are those of an open store, as last read.
type Settings struct {
	env *env.Env
	now atomic.Pointer[Config]

	unknown atomic.Bool // err is not nil
	exists  atomic.Bool // the file was there once, valid or not
	good    atomic.Bool // Now was read from it, not made of the defaults

	mu   sync.Mutex
	info vfs.Info // of the file when it was read
	err  error    // why the file, or members of it, do not hold

	asOf atomic.Uint64 // the entry of the log after which it was read
}

// New has the defaults, until Load, Make or Use.
func New(e *env.Env) *Settings {
	s := &Settings{env: e}
	s.now.Store(&Config{Format: Format})
	return s
}

// Now is what holds. It is shared: not to be changed.
func (s *Settings) Now() *Config { return s.now.Load() }

// History is what may be kept of it now; see Config.History. All of it while the settings are unknown.
func (s *Settings) History() (bytes int64, age time.Duration) {
	if s.Unknown() {
		return math.MaxInt64, 0
	}
	return s.Now().History(s.env.System.ArchiveBytes)
}

// Unsent is how many bytes may be kept beyond that for a copy elsewhere; see Config.Unsent.
func (s *Settings) Unsent() int64 { return s.Now().Unsent() }

// Unknown reports whether the file, or members of it, do not hold. Then nothing may be removed by what
// Now says: the defaults and the last good settings are not what the user has set.
func (s *Settings) Unknown() bool { return s.unknown.Load() }

// Exists reports whether the store has a config.json, as far as this process has read it.
func (s *Settings) Exists() bool { return s.exists.Load() }

// fail sets or clears why the file does not hold; mu is held.
func (s *Settings) fail(err error) {
	s.err = err
	s.unknown.Store(err != nil)
}

// Err says why the file, or members of it, do not hold; nil when all does.
func (s *Settings) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Load reads the file when the store is opened; see Read for its errors. Where there is a
// Config in spite of an error, Use takes it.
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

// Use takes what is valid of a file that as a whole is not, nil being nothing of it.
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

// Make writes the file of a new store, every default spelt out, and reads it.
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

// Update changes the file as it stands. Under flush.lock no other caller changes it between the
// reading and the writing. A member that is not valid gives way to its default, unless that removes
// something: then change has to set it. An error of change is returned, and nothing is written.
func (s *Settings) Update(_ *wal.Held, change func(*Config) error) error {
	c := s.Now().Clone() // the last good one
	// Two changes may leave one size and, where the clock of the files is coarse, one time.
	read, _, err := Read(s.env.FS, s.env.Dir)
	switch {
	case errors.Is(err, errs.ErrNewerFormat):
		return err // another process has brought it, and knows what it says
	case read != nil:
		c = *read // what is valid in it, as for who opens the store
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
			return fmt.Errorf("%w: correct config.json, or set %s", err, name)
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

// Reread looks whether the file has changed; false where that cannot be told just now, and
// the last one holds.
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
	// Two writes at once may have the same time.
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

// tell reports that the file does not hold.
func (s *Settings) tell(err error, note string) {
	s.env.Logger.Warn("config.json is not valid; the last valid settings apply, and nothing is removed by them", "err",
		err)
	s.env.Event(env.Event{Kind: env.EventConfig, Path: Name, Note: note, Err: err})
}

// Gone reports whether there is no file: then the folder may be that of a branch without the store, and no
// file of a document is to be put back.
func (s *Settings) Gone() bool {
	_, err := s.env.FS.Stat(s.path())
	return errors.Is(err, fs.ErrNotExist)
}

// AsOf reads the file again unless it was read since an entry of the log, that of a change
// which is written there too. It counts as read only behind the reading: another goroutine
// must not judge by what stood there before.
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

// Scratch is a temp name for a file of the store that nobody else uses: several
// processes may make one store at once.
func Scratch(e *env.Env, name string) (string, error) {
	var b [6]byte
	if err := e.Random(b[:]); err != nil {
		return "", err
	}
	return filepath.Join(e.Dir, name+"."+hex.EncodeToString(b[:])+".new"), nil
}
