//go:build unix

package vfs

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A page whose file is truncated to nothing does not fault. It becomes what the process saw last, and
// stays so when the file grows again.
func TestPageCut(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "shared")
	p, err := OS().OpenShared(name, true, 0o600)
	must(t, err)
	other, err := OS().OpenShared(name, false, 0o600)
	must(t, err)
	defer other.Close()
	p.Store(3, 30)
	if !p.CompareAndSwap(4, 0, 40) || other.Load(3) != 30 || other.Load(4) != 40 || IsCut(p) || IsCut(other) {
		t.Fatal("the page is not shared")
	}
	must(t, os.Truncate(name, 0))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if v := p.Load(3); v != 30 {
				t.Errorf("word 3 is %d", v)
			}
		})
	}
	all.Wait()
	if !IsCut(p) || IsCut(other) {
		t.Fatal("the fault was not noticed by who had it")
	}
	must(t, os.Truncate(name, PageSize))
	if p.Store(3, 31); p.Load(3) != 31 || p.Load(4) != 40 {
		t.Error("the page has not what was stored")
	}
	if other.Load(3) != 0 || IsCut(other) { // it has not accessed the page while the file was cut
		t.Error("a page that was cut reaches others")
	}
	must(t, os.Truncate(name, 0))
	other.Store(5, 1)
	if !IsCut(other) || other.Load(5) != 1 || other.CompareAndSwap(5, 2, 3) || !other.CompareAndSwap(5, 1, 3) {
		t.Error("a store, or an exchange, faults otherwise than a load")
	}
	must(t, p.Close())
	if p.Load(4) != 40 {
		t.Error("after Close the page is what it was")
	}
}

// BenchmarkPageLoad measures what every commit does dozens of times.
func BenchmarkPageLoad(b *testing.B) {
	p, err := OS().OpenShared(filepath.Join(b.TempDir(), "shared"), true, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for b.Loop() {
		p.Load(5)
	}
}
