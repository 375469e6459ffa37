package wal

import (
	"context"
	"sync"
	"testing"
	"time"
)

// A process that was killed while it waited costs one call, not one for each commit from then on; a waiting
// process is woken by the next commit of any process.
func TestWaiterKilled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	open := func() *FileLog {
		l, err := Open(ctx, (&model{}).options(dir))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	one, two := open(), open()
	put := func(l *FileLog) {
		t.Helper()
		if _, err := l.Append(ctx, &Batch{Entries: []Entry{{Key: "a", Kind: 16, Value: []byte("x")}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(one)
	one.shared.RaiseSleeper(one.Durable()) // and was killed
	put(two)
	if at := one.shared.Sleeper(); at != 0 {
		t.Errorf("somebody who is dead waits for %d, durable is %d", at, one.Durable())
	}
	// Many waiters during commits: none has to wait for the second after which it checks by itself.
	stop := make(chan struct{})
	var waiters, writers sync.WaitGroup
	late := make(chan time.Duration, 1000)
	for _, l := range []*FileLog{one, two} {
		waiters.Go(func() {
			for {
				was := l.Durable()
				moved := l.Moved()
				if l.Durable() != was {
					continue
				}
				began := time.Now()
				select {
				case <-moved:
					if took := time.Since(began); took >= sentryMost {
						late <- took
					}
				case <-stop:
					return
				}
			}
		})
	}
	for _, l := range []*FileLog{one, two} {
		writers.Go(func() {
			for range 300 {
				put(l)
			}
		})
	}
	writers.Wait()
	close(stop)
	waiters.Wait()
	close(late)
	for took := range late {
		t.Errorf("woken after %v", took)
	}
}
