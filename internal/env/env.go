package env

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/internal/vfs"
)

// Env is what everything in an open store is given: its folder, the file system below it,
// the clock, and who is told.
type Env struct {
	Dir string
	FS  vfs.FS // no link inside the store leads anywhere: vfs.Below

	ReadOnly     bool
	Refused      error // why nothing can be written to the store, where FS is laid over it
	NoBackground bool
	LockWait     time.Duration
	Logger       *slog.Logger
	Listener     func(Event)
	Clock        func() time.Time // for the times of documents; it may jump, and tests count its calls. Spans: System.Mono
	NaiveTimes   *time.Location
	FileMode     fs.FileMode
	FolderMode   fs.FileMode
	Shared       bool // a new store is one of its folder's group
	StateDir     string
	Self         vfs.Users // whose folders are this user's own
	System       vfs.System
	Meters       *meter.Meters // nil: nothing is counted

	release func() // the handle of the folder; nil before Hold
}

// Hold binds FS to the folder that is at Dir now, whatever is there later, see vfs.Hold. Without a folder it
// does nothing.
func (e *Env) Hold() error {
	if e.release != nil {
		return nil
	}
	held, release, err := vfs.Hold(e.FS, e.Dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // what needs it says so
	}
	if err != nil {
		return e.IOError("opening", e.Dir, err)
	}
	e.FS, e.release = held, release
	return nil
}

// Release closes the handle of Hold.
func (e *Env) Release() {
	if e.release != nil {
		e.release()
	}
}

// Rand is where ids, nonces and names come from.
func (e *Env) Rand() io.Reader {
	if e.System.Rand != nil {
		return e.System.Rand
	}
	return rand.Reader
}

// Random fills b.
func (e *Env) Random(b []byte) error {
	_, err := io.ReadFull(e.Rand(), b)
	return err
}

// UUID makes a new one.
func (e *Env) UUID() (uuid.UUID, error) { return uuid.NewRandomFromReader(e.Rand()) }

// Nonce marks an append; see package segment.
func (e *Env) Nonce() uint32 {
	var b [4]byte
	if err := e.Random(b[:]); err != nil {
		return 0 // the system's reader does not fail
	}
	return binary.LittleEndian.Uint32(b[:])
}

// Sleep waits, or ends with ctx.
func (e *Env) Sleep(ctx context.Context, d time.Duration) error {
	if e.System.Sleep != nil {
		return e.System.Sleep(ctx, d)
	}
	return vfs.Sleep(ctx, d)
}

// StateFolder is where programs of this user keep what outlives them, and ours in it; ""
// where there is no home.
func StateFolder(get func(string) string, system string) string {
	const own = "varve"
	if base := get("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, own) // by the specification a relative one does not count
	}
	var base []string
	switch system {
	case "windows":
		base = []string{get("LOCALAPPDATA")}
	case "darwin":
		base = []string{get("HOME"), "Library", "Application Support"}
	default:
		base = []string{get("HOME"), ".local", "state"}
	}
	if !filepath.IsAbs(base[0]) {
		return ""
	}
	return filepath.Join(append(base, own)...)
}
