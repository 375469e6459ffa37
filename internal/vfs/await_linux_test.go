package vfs

import (
	"path/filepath"
	"testing"
	"time"
)

// A waiter on a page is woken through another mapping of it, does not sleep if the word has already
// changed, and returns by itself after the maximum time.
func TestAwait(t *testing.T) {
	name := filepath.Join(t.TempDir(), "shared")
	a, err := OS().OpenShared(name, true, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := OS().OpenShared(name, false, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const word, long = 5, time.Minute
	woken := make(chan time.Time)
	go func() {
		for a.Load(word) == 0 {
			a.(Awaiter).Await(word, 0, long)
		}
		woken <- time.Now()
	}()
	select {
	case <-woken:
		t.Fatal("woken by nobody")
	case <-time.After(20 * time.Millisecond):
	}
	b.Store(word, 1<<40|8)
	b.(Awaiter).Wake(word)
	select {
	case <-woken:
	case <-time.After(10 * time.Second):
		t.Fatal("not woken")
	}
	began := time.Now()
	a.(Awaiter).Await(word, 0, long)
	if took := time.Since(began); took > long/2 {
		t.Errorf("slept %v though the word had changed", took)
	}
	began = time.Now()
	a.(Awaiter).Await(word, 1<<40|8, 5*time.Millisecond)
	if took := time.Since(began); took > long/2 {
		t.Errorf("slept %v of 5 ms", took)
	}
}
