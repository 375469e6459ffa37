package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestOverlayModel compares random histories with a map, with hashes so weak that keys share slots,
// tables and whole first hashes.
func TestOverlayModel(t *testing.T) {
	weak := func(kind byte, id string) (h1, h2 uint64) {
		for _, c := range []byte(id) {
			h2 = h2*31 + uint64(c) + uint64(kind)<<32
		}
		return h2 % 5 << 56 * (h2 % 2), h2
	}
	rapid.Check(t, func(t *rapid.T) {
		o := newOverlay(weak)
		type at struct {
			At
			key string
		}
		newest := map[string]at{}
		pos, dropped := uint64(8), uint64(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 20).Draw(t, "op"); {
			case op == 0:
				dropped = rapid.Uint64Range(dropped, pos+8).Draw(t, "below")
				o.DropBelow(dropped)
				maps.DeleteFunc(newest, func(_ string, a at) bool { return a.Pos < dropped })
			case op == 1 && pos > 8:
				if o.Put('m', "late", rapid.Uint64Range(0, pos-8).Draw(t, "old"), false) {
					t.Fatal("an old position was taken")
				}
			default:
				id, del := fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "id")), rapid.Bool().Draw(t, "del")
				if !o.Put('m', id, pos, del) {
					t.Fatal("refused")
				}
				newest[id] = at{At{pos, del}, id}
				pos += 8
			}
		}
		if o.Len() != len(newest) {
			t.Fatalf("%d keys, want %d", o.Len(), len(newest))
		}
		for i := range 41 {
			p, del, ok := o.Get('m', fmt.Sprint(i))
			want, has := newest[fmt.Sprint(i)]
			if ok != has || ok && (p != want.Pos || del != want.Deleted) {
				t.Fatalf("%d: %d %v %v, want %+v %v", i, p, del, ok, want, has)
			}
		}
		from, to := rapid.Uint64Range(0, pos+8).Draw(t, "from"), rapid.Uint64Range(0, pos+8).Draw(t, "to")
		var want []At
		for _, a := range newest {
			if a.Pos >= from && a.Pos < to {
				want = append(want, a.At)
			}
		}
		slices.SortFunc(want, func(a, b At) int { return int(a.Pos) - int(b.Pos) })
		if got := slices.Collect(o.Changes(from, to)); !slices.Equal(got, want) {
			t.Fatalf("changes in [%d, %d): %v, want %v", from, to, got, want)
		}
	})
}

// The sequence number wraps after four billion changes.
func TestOverlayWrap(t *testing.T) {
	o := NewOverlay()
	o.first = ^uint32(0) - 1500
	for i := range uint64(4000) {
		o.Put('m', fmt.Sprint(i), i+1, false)
		if i > 2500 {
			o.DropBelow(i - 2000)
		}
	}
	for i := range uint64(4000) {
		p, _, ok := o.Get('m', fmt.Sprint(i))
		if want := i+1 >= 1999; ok != want || ok && p != i+1 {
			t.Fatalf("%d: %d %v", i, p, ok)
		}
	}
}

func TestOverlaySweep(t *testing.T) {
	o := NewOverlay()
	for i := range uint64(100_000) {
		o.Put('m', fmt.Sprint(i%10), i+1, false)
	}
	if o.n > 4*chunkLen {
		t.Errorf("%d entries for 10 keys", o.n)
	}
	if p, _, ok := o.Get('m', "9"); !ok || p != 100_000 {
		t.Error(p, ok)
	}
}

func TestOverlayConcurrent(t *testing.T) {
	o := NewOverlay()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if p, _, ok := o.Get('m', "7"); ok && p%10 != 8 {
					t.Error(p)
				}
				prev := uint64(0)
				for a := range o.Changes(0, 1<<40) {
					if a.Pos <= prev {
						t.Error("out of order")
					}
					prev = a.Pos
				}
			}
		})
	}
	for i := range uint64(20_000) {
		o.Put('m', fmt.Sprint(i%10+i/5000*10), i+1, false)
		if i%1000 == 999 {
			o.DropBelow(i - 500)
		}
	}
	close(stop)
	wg.Wait()
}

func overlayOf(n int) (*Overlay, []string) {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%016x-%d", rand.Uint64(), i)
	}
	o := NewOverlay()
	for i, id := range ids {
		o.Put('m', id, uint64(i+1)*8, false)
	}
	return o, ids
}

func TestOverlayMemory(t *testing.T) {
	for _, n := range []int{10_000, 100_000, 300_000} {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprint("id-", i)
		}
		var a, b runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&a)
		o := NewOverlay()
		for i, id := range ids {
			o.Put('m', id, uint64(i+1)*8, false)
		}
		runtime.GC()
		runtime.ReadMemStats(&b)
		per := float64(int64(b.HeapAlloc)-int64(a.HeapAlloc)) / float64(n)
		runtime.KeepAlive(o)
		runtime.KeepAlive(ids)
		t.Logf("%d keys: %.1f bytes each", n, per)
		if per > 40 {
			t.Errorf("%d keys: %.1f bytes each", n, per)
		}
	}
}

func BenchmarkOverlayGet(b *testing.B) {
	o, ids := overlayOf(1_000_000)
	b.Run("one", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, _, ok := o.Get('m', ids[i%len(ids)]); !ok {
				b.Fatal()
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := rand.IntN(len(ids)); pb.Next(); i++ {
				if _, _, ok := o.Get('m', ids[i%len(ids)]); !ok {
					b.Error()
				}
			}
		})
	})
}

func BenchmarkOverlayPut(b *testing.B) {
	_, ids := overlayOf(1_000_000)
	o := NewOverlay()
	for i := 0; b.Loop(); i++ {
		o.Put('m', ids[i%len(ids)], uint64(i+1), false)
	}
}
