package varve

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"os"
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

func userID() int { return os.Getuid() }
