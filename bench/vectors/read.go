package main

import (
	"encoding/binary"
	"sync"
	"time"
)

func readWords(b []byte) (x uint64) {
	for ; len(b) >= 8; b = b[8:] {
		x |= binary.LittleEndian.Uint64(b)
	}
	return x
}

// readRate measures how long reading a number of bytes of memory takes, with several threads.
func readRate(b []byte, threads int) time.Duration {
	began := time.Now()
	var wg sync.WaitGroup
	for k := range threads {
		from, to := k*len(b)/threads, (k+1)*len(b)/threads
		wg.Go(func() { sink(readAll(b[from:to])) })
	}
	wg.Wait()
	return time.Since(began)
}

//go:noinline
func sink(uint64) {}
