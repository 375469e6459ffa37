package record

import (
	"bytes"
	"testing"
)

// FuzzSplitKept: KeptLine of what SplitKept returns gives the same bytes.
func FuzzSplitKept(f *testing.F) {
	f.Add(KeptLine(nil, 1_790_000_000_000_000, 7, []byte(`{"filepath":"memories/x.json"}`)))
	f.Add(KeptLine(nil, -1, 0, []byte(`{"filepath":",\"line\":"}`)))
	f.Add([]byte(`{"time":01,"line":{}}`))
	f.Add([]byte(`{"time":1,"line":}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		at, by, line, err := SplitKept(b)
		if err == nil && !bytes.Equal(KeptLine(nil, at, by, line), b) {
			t.Errorf("%q is taken apart to %d and %q", b, at, line)
		}
	})
}
