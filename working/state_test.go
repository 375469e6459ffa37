package working_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/working"
)

var seed = flag.Uint64("state.seed", 0, "replay TestStateReplay with this seed")

// TestStateReplay applies random operations to a State. Another State that plays the changes as a log
// has them, and a third that is encoded and decoded now and then, must result in the same document.
func TestStateReplay(t *testing.T) {
	s := proofs.Seed(t, *seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay: go test ./working -run '^TestStateReplay$' -state.seed %d", s)
		}
	})
	r := rand.New(rand.NewPCG(s, 1))
	scope := working.Scope{Project: "p", Session: "s"}
	judge, follow, file := working.NewState(), working.NewState(), working.NewState()
	at := working.Moment{Time: 1_767_323_045_000_000, Tick: 1_767_323_045_000}
	for i := range 2000 {
		if r.IntN(4) == 0 {
			d := r.Int64N(40_000)
			at.Time, at.Tick = at.Time+1000*d, at.Tick+d
		}
		req := &working.Request{Scope: scope, Limits: working.Limits{Keys: 6, Evict: r.IntN(2) == 0}, Op: randomOp(r, judge, at, i)}
		d, _, err := judge.Judge(at, req)
		if err != nil || d.Empty() {
			continue
		}
		text, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		replayed, err := working.DecodeDelta(text)
		if err != nil {
			t.Fatalf("step %d: %v: %s", i, err, text)
		}
		judge.Play(at, uint64(i+1), &d)
		follow.Play(at, uint64(i+1), replayed)
		file.Play(at, uint64(i+1), &d)
		want := document(t, judge, scope)
		if got := document(t, follow, scope); !bytes.Equal(got, want) {
			t.Fatalf("step %d, %T: who follows the log has\n%s\nwant\n%s", i, req.Op, got, want)
		}
		if r.IntN(5) == 0 {
			var where working.Scope
			if file, where, err = working.DecodeState(want); err != nil || where != scope {
				t.Fatalf("step %d: %v, %v", i, where, err)
			}
		}
		if got := document(t, file, scope); !bytes.Equal(got, want) {
			t.Fatalf("step %d, %T: read back\n%s\nwant\n%s", i, req.Op, got, want)
		}
		if r.IntN(5) == 0 {
			sweptAlike(t, judge.Clone(), judge.Clone(), at)
		}
		if r.IntN(5) == 0 {
			// A clone is independent of the original.
			twin := judge.Clone()
			if got := document(t, twin, scope); !bytes.Equal(got, want) {
				t.Fatalf("step %d: the clone has\n%s\nwant\n%s", i, got, want)
			}
			for n := range 10 {
				ahead := &working.Request{Scope: scope, Op: randomOp(r, twin, at, -n)}
				if d, _, err := twin.Judge(at, ahead); err == nil {
					twin.Play(at, twin.Version()+1, &d)
				}
			}
			if got := document(t, judge, scope); !bytes.Equal(got, want) {
				t.Fatalf("step %d: the clone changed its original to\n%s\nfrom\n%s", i, got, want)
			}
		}
	}
}

// sweptAlike fails the test unless removing expired items changes nothing that is visible, now or
// through a later checkpoint.
func sweptAlike(t *testing.T, a, b *working.State, at working.Moment) {
	t.Helper()
	b.Sweep(at.Tick, 1<<30)
	const id = "0198c5a1-0000-4000-8000-000000000000"
	see := func(s *working.State) string {
		var all []any
		do := func(op working.Op) working.Result {
			d, res, err := s.Judge(at, &working.Request{Op: op})
			s.Play(at, s.Version()+1, &d)
			all = append(all, res, err)
			return res
		}
		do(working.OpLoad{})
		do(working.OpList{})
		do(working.OpCheckpoint{ID: id})
		for _, cp := range do(working.OpCheckpoints{}).Checkpoints {
			do(working.OpLoad{ID: cp.ID})
		}
		do(working.OpRestore{ID: id, Undo: "0198c5a1-0000-4000-8000-000000000001"})
		do(working.OpLoad{})
		c := do(working.OpCount{}).Counts
		all[len(all)-2] = []any{c.Keys, c.Bytes, c.Notes, c.Checkpoints, c.Task}
		for i := range all {
			if res, ok := all[i].(working.Result); ok {
				for j := range res.Checkpoints { // nothing else distinguishes an item that was removed from one that has expired
					res.Checkpoints[j].Changed = 0
				}
			}
		}
		return fmt.Sprintf("%v", all)
	}
	if x, y := see(a), see(b); x != y {
		t.Fatalf("before sweeping\n%s\nafter\n%s", x, y)
	}
}

func document(t *testing.T, s *working.State, scope working.Scope) []byte {
	t.Helper()
	doc, err := s.Encode(scope)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func randomOp(r *rand.Rand, s *working.State, at working.Moment, i int) working.Op {
	name := working.ValueName(string(rune('a' + r.IntN(8))))
	marks := func() string {
		_, res, _ := s.Judge(at, &working.Request{Op: working.OpCheckpoints{}})
		if len(res.Checkpoints) == 0 {
			return uuid.NewString()
		}
		return res.Checkpoints[r.IntN(len(res.Checkpoints))].ID
	}
	id := uuid.Must(uuid.NewRandomFromReader(readerOf{r})).String()
	switch r.IntN(14) {
	case 0, 1, 2, 3:
		ttl := int64(working.Forever)
		if r.IntN(2) == 0 {
			ttl = r.Int64N(100_000)
		}
		return working.OpPut{Items: []working.PutItem{{Name: name, Value: fmt.Appendf(nil, `{"n":[%d,null,"\u0000"]}`, i), TTL: ttl}}}
	case 4:
		return working.OpDelete{Names: []string{name}}
	case 5:
		return working.OpExpire{Name: name, TTL: r.Int64N(100_000)}
	case 6, 7:
		return working.OpAppend{Text: fmt.Sprint("entry ", i), Keep: 3}
	case 8:
		return working.OpPut{Items: []working.PutItem{{Name: working.TaskName, Value: fmt.Appendf(nil, `{"status":"%d"}`, i), TTL: working.Forever}}}
	case 9:
		if r.IntN(40) == 0 {
			return working.OpDrop{}
		}
		return []working.Op{working.OpClear{}, working.OpClearNotes{}, working.OpDelete{Names: []string{working.TaskName}}}[r.IntN(3)]
	case 10, 11:
		return working.OpCheckpoint{ID: id, Description: fmt.Sprint("at ", i), Keep: 5}
	case 12:
		return working.OpRestore{ID: marks(), Undo: id, Keep: 5}
	default:
		return working.OpDiscard{ID: marks()}
	}
}

type readerOf struct{ r *rand.Rand }

func (x readerOf) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(x.r.Uint32())
	}
	return len(p), nil
}

// FuzzDecodeState: whatever a file contains, decoding does not panic, and a decoded state is encoded so
// that it decodes to the same.
func FuzzDecodeState(f *testing.F) {
	s := working.NewState()
	scope := working.Scope{Session: "s"}
	at := working.Moment{Time: 1_767_323_045_000_000, Tick: 1_767_323_045_000}
	for i, op := range []working.Op{
		working.OpPut{Items: []working.PutItem{{Name: working.ValueName("k"), Value: []byte("1"), TTL: 1000}, {Name: working.TaskName, Value: []byte("{}"), TTL: -1}}},
		working.OpAppend{Text: "x"}, working.OpCheckpoint{ID: "0198c5a1-0000-4000-8000-000000000000"},
		working.OpDelete{Names: []string{working.ValueName("k")}}, working.OpClearNotes{}, working.OpCheckpoint{ID: "0198c5a1-0000-4000-8000-000000000001"},
		working.OpPut{Items: []working.PutItem{{Name: working.ValueName("k2"), Value: []byte("null"), TTL: -1}}},
	} {
		d, _, err := s.Judge(at, &working.Request{Op: op})
		if err != nil {
			f.Fatal(err)
		}
		s.Play(at, uint64(i+1), &d)
	}
	doc, err := s.Encode(scope)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Add([]byte(`{"scope":"global","created_at":"2026-01-01T00:00:00Z","version":1,"values":{},"scratchpad":[],"checkpoints":[]}`))
	f.Add([]byte(`[{"do":"put","name":"vk","value":1}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := working.DecodeDelta(b); err == nil {
			working.NewState().Play(at, 1, d)
		}
		s, scope, err := working.DecodeState(b)
		if err != nil {
			return
		}
		once := document(t, s, scope)
		again, _, err := working.DecodeState(once)
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		if twice := document(t, again, scope); !bytes.Equal(once, twice) {
			t.Fatalf("%s\nthen\n%s", once, twice)
		}
		if d, _, err := s.Judge(at, &working.Request{Scope: scope, Op: working.OpCheckpoint{ID: "0198c5a1-0000-4000-8000-00000000000f"}}); err == nil {
			s.Play(at, s.Version()+1, &d)
		}
	})
}

// F46: 100 checkpoints of a scope of 1 MB with small changes take the size of the changes, not 100 MB:
// the scope, the first checkpoint, and for each change of a value of 1,000 bytes less than twice as
// much.
func TestF46Size(t *testing.T) {
	s := working.NewState()
	scope := working.Scope{Session: "s"}
	at := working.Moment{Time: 1_767_323_045_000_000, Tick: 1_767_323_045_000}
	n := uint64(0)
	do := func(op working.Op) {
		t.Helper()
		d, _, err := s.Judge(at, &working.Request{Scope: scope, Op: op})
		if err != nil {
			t.Fatal(err)
		}
		n++
		s.Play(at, n, &d)
	}
	put := func(i int, v byte) {
		value := append(append([]byte{'"'}, bytes.Repeat([]byte{v}, 1000)...), '"')
		do(working.OpPut{Items: []working.PutItem{{Name: working.ValueName(fmt.Sprint("k", i)), Value: value, TTL: working.Forever}}})
	}
	for i := range 1000 {
		put(i, 'a')
	}
	scopeSize := len(document(t, s, scope))
	for i := range 100 {
		put(i%7, byte('b'+i%20))
		do(working.OpCheckpoint{ID: uuid.Must(uuid.NewRandomFromReader(readerOf{rand.New(rand.NewPCG(1, uint64(i)))})).String()})
	}
	size := len(document(t, s, scope))
	if limit := 2*scopeSize + 100*2000; size > limit {
		t.Errorf("%d bytes, want at most %d", size, limit)
	}
	t.Logf("the scope: %d bytes; with 100 checkpoints: %d", scopeSize, size)
}
