package index

import (
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// FAILURES 78: a new base is put in place and the delta is removed while a reader is between opening the
// two. At whatever moment this happens, the reader has everything: it maps the delta first, and starts
// again if the two together cover less than was released. See Load in index/table/set.go; either measure
// is enough here, and both have to be removed for this test to fail.
func TestFailures78(t *testing.T) {
	merged := 0
	for at := 1; ; at++ {
		d := crash.New()
		writer := d.Process("writer")
		if err := writer.Mkdir("/store", 0o700); err != nil {
			t.Fatal(err)
		}
		load := func() *Set {
			s, err := Load(writer, "/store", Want{Store: store}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		m := newModel()
		m.put(Memories, "in the base", "", time.Time{})
		if _, err := WriteBase(Empty(8), target(writer, "/store", m.lsn), m.take()); err != nil {
			t.Fatal(err)
		}
		m.put(Memories, "in the delta", "", time.Time{})
		old := load()
		if _, err := WriteDelta(old, target(writer, "/store", m.lsn), m.take()); err != nil {
			t.Fatal(err)
		}
		spilled := m.lsn
		ops, done := 0, false
		reader := wrap.New(d.Process("reader"), func(_ *wrap.Op, call func() error) error {
			if ops++; ops == at {
				done = true
				m.put(Memories, "merged", "", time.Time{})
				if _, err := WriteBase(load(), target(writer, "/store", m.lsn), m.take()); err != nil {
					t.Fatal(err)
				}
			}
			return call()
		})
		s, err := Load(reader, "/store", Want{Store: store, Spilled: spilled}, nil)
		if err != nil {
			t.Fatalf("merged before operation %d: %v", at, err)
		}
		for _, id := range []string{"in the base", "in the delta"} {
			if _, ok, err := s.Get(nil, Memories, id); !ok || err != nil {
				t.Errorf("merged before operation %d of the reader: what was %s is gone (%v)", at, id, err)
			}
		}
		if s.LSN() < spilled {
			t.Errorf("merged before operation %d of the reader: it covers %d, %d was released", at, s.LSN(), spilled)
		}
		if !done {
			break
		}
		merged++
	}
	if merged < 6 {
		t.Fatalf("only %d moments: where is the reader?", merged)
	}
}
