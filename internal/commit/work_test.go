package commit

import (
	"bytes"
	"testing"

	"github.com/varve-db/varve/wal"
)

func TestArenaKeepsValuesApart(t *testing.T) {
	var a arena
	var kept [][]byte
	for i := range 3000 {
		n := 1 + i*37%5000
		v := a.room(n)
		if len(v) != 0 || cap(v) < n {
			t.Fatalf("room(%d) has length %d, capacity %d", n, len(v), cap(v))
		}
		for range n {
			v = append(v, byte(i))
		}
		a.keep(v)
		kept = append(kept, v)
	}
	for i, v := range kept {
		if !bytes.Equal(v, bytes.Repeat([]byte{byte(i)}, 1+i*37%5000)) {
			t.Fatalf("value %d was written over", i)
		}
	}
}

// TestWorkIsLeftToTheLog verifies that a work is not reused while the log, which points into its values, has not
// applied them.
func TestWorkIsLeftToTheLog(t *testing.T) {
	w := &work{}
	w.batch.Entries = append(w.batch.Entries, wal.Entry{LSN: 7, Value: []byte("v")})
	if w.clear(7) || len(w.batch.Entries) != 1 {
		t.Error("taken back before the log had applied it")
	}
	if !w.clear(8) || len(w.batch.Entries) != 0 {
		t.Error("not taken back")
	}
}
