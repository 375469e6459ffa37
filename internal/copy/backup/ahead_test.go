package backup

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
)

func sizeless(int) int64 { return 0 }

// TestAhead verifies that results are taken in the order of the values, each once, whatever the workers do.
func TestAhead(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2, 5} {
		var next int
		a := newAhead(workers, sizeless, func(k int) (int, error) {
			x := 0
			for i := range (k % 7) * 1000 {
				x += i
			}
			return k + min(x, 0), nil
		}, func(k, v int, err error) error {
			if k != next || v != k || err != nil {
				t.Errorf("%d workers: took %d, %d, %v in place of %d", workers, k, v, err, next)
			}
			next++
			return nil
		})
		for k := range 1000 {
			if err := a.add(k); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.finish(); err != nil || next != 1000 {
			t.Errorf("%d workers: %d of 1000, %v", workers, next, err)
		}
		a.close()
	}
}

// TestAheadFails verifies that the first error in the order of the values is returned, and that close waits for the
// workers and begins no more.
func TestAheadFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, workers := range []int{1, 2} {
		var running atomic.Int32
		a := newAhead(workers, sizeless, func(k int) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			if k == 500 {
				return 0, broken
			}
			return k, nil
		}, func(_, _ int, err error) error { return err })
		var err error
		k := 0
		for ; k < 1000 && err == nil; k++ {
			err = a.add(k)
		}
		if err == nil {
			err = a.finish()
		}
		a.close()
		if !errors.Is(err, broken) || k > 501+aheadMost || running.Load() != 0 {
			t.Errorf("%d workers: %v after %d, %d still run", workers, err, k, running.Load())
		}
	}
}

// TestAheadBytes verifies that large results do not wait in great numbers, and that this never ends in a standstill.
func TestAheadBytes(t *testing.T) {
	t.Parallel()
	const large = 16 << 20
	for _, workers := range []int{1, 2, 5} {
		for _, sizes := range []func(int) int64{
			func(int) int64 { return large },
			func(k int) int64 { return large * int64(k%2) },
			func(k int) int64 { return 2 * aheadBytes * int64(k%3/2) },
		} {
			var waiting, most atomic.Int64 // bytes
			next := 0
			a := newAhead(workers, sizes, func(k int) (int, error) {
				n := waiting.Add(sizes(k))
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				return k, nil
			}, func(k, v int, err error) error {
				if k != next || v != k || err != nil {
					t.Errorf("took %d, %d, %v in place of %d", k, v, err, next)
				}
				for range 100 {
					runtime.Gosched()
				}
				next++
				waiting.Add(-sizes(k))
				return nil
			})
			for k := range 300 {
				if err := a.add(k); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.finish(); err != nil || next != 300 {
				t.Errorf("%d of 300, %v", next, err)
			}
			a.close()
			if limit := aheadBytes + int64(workers)*max(sizes(1), sizes(2)); most.Load() > limit {
				t.Errorf("%d workers: results of %d bytes waited, %d allowed", workers, most.Load(), limit)
			}
		}
	}
}
