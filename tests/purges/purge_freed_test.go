package purges

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/internal/vfs/crash"
)

// checkFreed searches the freed blocks for the secrets. On systems without leases the files of the index
// are removed without being overwritten, and the report names them: then only the content of the secrets
// must not be there.
func (s *secrets) checkFreed(t testing.TB, d *crash.Disk, contentOnly bool) {
	t.Helper()
	if found := s.inFreed(t, d, contentOnly); len(found) > 0 {
		t.Errorf("%d pieces are in free blocks:\n%s", len(found), strings.Join(found[:min(len(found), 20)], "\n"))
	}
}

func (s *secrets) inFreed(t testing.TB, d *crash.Disk, contentOnly bool) (found []string) {
	t.Helper()
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	look := func(where string, b []byte) {
		for what, part := range s.parts {
			if contentOnly && !strings.Contains(what, " at ") {
				continue
			}
			if at := bytes.Index(b, part); at >= 0 {
				found = append(found, fmt.Sprintf("%s at %d: %s, in %.60q", where, at, what, b))
			}
		}
	}
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for _, p := range d.Freed() {
		b := p.Data
		look(p.Name, b)
		for at := 0; ; at += len(magic) {
			next := bytes.Index(b[at:], magic)
			if next < 0 {
				break
			}
			at += next
			plain, _ := dec.DecodeAll(b[at:], nil) // an error: what follows is not a frame
			look(fmt.Sprintf("%s, inflated at %d", p.Name, at), plain)
		}
	}
	return found
}
