package yield

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestBesideOthersThatCompute verifies that a goroutine that yields keeps a share of the processor beside goroutines
// that compute. Without a turn of its own after each turn of others, work that takes 20 ms alone would take 30 ms for
// each of 2,000 turns here.
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
	for i := 0; i < 2000 && given <= 50; i++ {
		was := own.next
		own.Give()
		if own.next != was {
			given++
		}
		for end := time.Now().Add(10 * time.Microsecond); time.Now().Before(end); {
		}
	}
	if given > 50 {
		t.Errorf("%d turns given", given)
	}
}

// TestAlone verifies that a goroutine yields repeatedly although no other goroutine computes.
func TestAlone(t *testing.T) {
	var own Turns
	given := 0
	for end := time.Now().Add(10 * time.Second); given < 5; {
		was := own.next
		if own.Give(); own.next != was {
			given++
		}
		if time.Now().After(end) {
			t.Fatalf("%d turns given", given)
		}
	}
}
