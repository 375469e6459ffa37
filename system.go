package varve

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// env is what everything in an open store is given: its folder, the file system below it,
// the clock, and who is told.
type env struct {
	dir string
	fs  vfs.FS // no link inside the store leads anywhere: vfs.Below

	ReadOnly     bool
	NoBackground bool
	LockWait     time.Duration
	Logger       *slog.Logger
	Listener     func(Event)
	Clock        func() time.Time
	ownClock     bool // Clock is the machine's
	NaiveTimes   *time.Location
	FileMode     fs.FileMode
	FolderMode   fs.FileMode
	StateDir     string
	System       vfs.System
}

func (e *env) random(b []byte) error {
	_, err := e.rand().Read(b)
	return err
}

type reader func([]byte) error

func (r reader) Read(b []byte) (int, error) { return len(b), r(b) }

func (e *env) rand() io.Reader {
	if e.System.Rand != nil {
		return e.System.Rand
	}
	return rand.Reader
}

// nonce marks an append; see package segment.
func (e *env) nonce() uint32 {
	var b [4]byte
	if err := e.random(b[:]); err != nil {
		return 0 // the system's reader does not fail
	}
	return binary.LittleEndian.Uint32(b[:])
}

// sleep waits, or ends with ctx.
func (e *env) sleep(ctx context.Context, d time.Duration) error {
	if e.System.Sleep != nil {
		return e.System.Sleep(ctx, d)
	}
	return vfs.Sleep(ctx, d)
}

func userID() int { return os.Getuid() }

// stateFolder is where programs of this user keep what outlives them, and ours in it; ""
// where there is no home.
func stateFolder(get func(string) string, system string) string {
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
