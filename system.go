package varve

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

func (st *Store) rand() io.Reader {
	if st.o.System.Rand != nil {
		return st.o.System.Rand
	}
	return rand.Reader
}

// nonce marks an append; see package segment.
func (st *Store) nonce() uint32 {
	var b [4]byte
	if err := st.random(b[:]); err != nil {
		return 0 // the system's reader does not fail
	}
	return binary.LittleEndian.Uint32(b[:])
}

// sleep waits, or ends with ctx.
func (st *Store) sleep(ctx context.Context, d time.Duration) error {
	if st.o.System.Sleep != nil {
		return st.o.System.Sleep(ctx, d)
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
