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
	"runtime"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/internal/vfs"
)

// Env is the environment of all parts of an open store: its folder, the file system below it, the clock, and the
// receivers of log messages and events.
type Env struct {
	Dir string
	FS  vfs.FS // the file system; follows no link inside the store: vfs.Below

	ReadOnly     bool
	Refused      error // the reason why nothing can be written to the store, if FS is an overlay over it
	NoBackground bool
	LockWait     time.Duration
	Logger       *slog.Logger
	Listener     func(Event)
	// current time, for times of documents; may jump; tests count its calls. Durations: System.Mono
	Clock      func() time.Time
	NaiveTimes *time.Location
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	Shared     bool // a new store belongs to the group of its folder
	StateDir   string
	Self       vfs.Users // identifies the folders that belong to this user
	System     vfs.System
	Meters     *meter.Meters // counters of operations and waits; nil: nothing is counted

	release func() // closes the handle of the folder; nil before Hold
}

// Readers returns the number of goroutines with which one call may read data of the store.
func (e *Env) Readers() int {
	if e.System.Inline {
		return 1
	}
	return min(runtime.GOMAXPROCS(0), 16)
}

// Hold binds FS to the folder that is now at Dir. FS continues to use this folder even if the folder is renamed or
// replaced later; see vfs.Hold. If Dir does not exist, Hold does nothing.
func (e *Env) Hold() error {
	if e.release != nil {
		return nil
	}
	held, release, err := vfs.Hold(e.FS, e.Dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // operations that need it report that
	}
	if err != nil {
		return e.IOError("opening", e.Dir, err)
	}
	e.FS, e.release = held, release
	return nil
}

// Release closes the folder handle that Hold has opened.
func (e *Env) Release() {
	if e.release != nil {
		e.release()
	}
}

// Rand returns the source of random numbers for ids, nonces and names.
func (e *Env) Rand() io.Reader {
	if e.System.Rand != nil {
		return e.System.Rand
	}
	return rand.Reader
}

// Random fills b with random bytes.
func (e *Env) Random(b []byte) error {
	_, err := io.ReadFull(e.Rand(), b)
	return err
}

// UUID returns a new UUID.
func (e *Env) UUID() (uuid.UUID, error) { return uuid.NewRandomFromReader(e.Rand()) }

// Nonce returns a random number that identifies an append to the log; see package segment.
func (e *Env) Nonce() uint32 {
	var b [4]byte
	if err := e.Random(b[:]); err != nil {
		return 0 // the system's reader does not fail
	}
	return binary.LittleEndian.Uint32(b[:])
}

// Sleep waits for d, or until ctx ends.
func (e *Env) Sleep(ctx context.Context, d time.Duration) error {
	if e.System.Sleep != nil {
		return e.System.Sleep(ctx, d)
	}
	return vfs.Sleep(ctx, d)
}

// StateFolder returns this program's folder in the folder where the programs of this user keep their state. get
// returns the value of an environment variable, and system is the name of the operating system (runtime.GOOS).
// StateFolder returns "" if the user has no home folder.
func StateFolder(get func(string) string, system string) string {
	const own = "varve"
	if base := get("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, own) // by the specification a relative path is ignored
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
