package turns

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// Beside goroutines that compute, what gives turns keeps a share of the processor: without a turn of one's own
// after each of theirs, what takes 20 ms alone would take 30 ms for each of 2,000 turns here.
func TestBesideOthersThatCompute(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var over atomic.Bool
	const others = 3
	ended := make(chan struct{}, others)
	for range others {
		go func() {
			for !over.Load() {
			}
			ended <- struct{}{}
		}()
	}
	defer func() {
		over.Store(true)
		for range others {
			<-ended
		}
	}()
	var own Turns
	given := 0
	for range 2000 {
		was := own.next
		own.Give()
		if own.next != was {
			given++
		}
		for end := time.Now().Add(10 * time.Microsecond); time.Now().Before(end); {
		}
	}
	if given == 0 || given > 200 {
		t.Errorf("%d turns given", given)
	}
}
