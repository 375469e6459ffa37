package sender

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/google/uuid"
)

// TestTags: a binding accepts its own tag and the one that an earlier program has written for the remote, and not that
// of another machine or of another remote.
func TestTags(t *testing.T) {
	a := Binding{Remote: uuid.New(), Machine: uuid.New()}
	b := Binding{Remote: a.Remote, Machine: uuid.New()}
	c := Binding{Remote: uuid.New(), Machine: a.Machine}
	for b.Tag() == a.Tag() { // the tags have 16 bits of each ID
		b.Machine = uuid.New()
	}
	for c.Tag()>>16 == a.Tag()>>16 {
		c.Remote = uuid.New()
	}
	sum := sha256.Sum256(a.Remote[:])
	earlier := max(1, binary.LittleEndian.Uint32(sum[:4]))
	for name, x := range map[string]struct{ got, want bool }{
		"its own":                          {a.Owns(a.Tag()), true},
		"of another machine":               {a.Owns(b.Tag()), false},
		"of another remote":                {a.Owns(c.Tag()), false},
		"of an earlier program":            {a.Owns(earlier) && b.Owns(earlier), true},
		"of an earlier program elsewhere":  {c.Owns(earlier), false},
		"of the remote":                    {TagIsOf(b.Tag(), a.Remote), true},
		"of the remote by an earlier one":  {TagIsOf(earlier, a.Remote), true},
		"of the remote of another binding": {TagIsOf(c.Tag(), a.Remote), false},
	} {
		if x.got != x.want {
			t.Errorf("a tag %s: %v", name, x.got)
		}
	}
}
