package varve

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"os"
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
