package fswatch

import (
	"context"
	"time"
)

// The pace of a scan over all files. It takes at most a tenth of the time, so that users do not notice it.
const (
	sweepFiles = 500 // number of files that are checked between two pauses
	sweepRest  = 9
)

// sweep starts a scan of all files. If a scan is running, another one follows it.
func (s *session) sweep(ctx context.Context) {
	if s.again = s.sweeping != nil; s.again {
		return // and once more, then
	}
	out := make(chan found, 64)
	s.sweeping = out
	go func() {
		defer close(out)
		for _, name := range s.names {
			n, began := 0, time.Now()
			for file, err := range s.f.Suspects(ctx, name) {
				if err != nil {
					s.failed(name, err)
					break
				}
				if file != "" {
					waits := time.Now()
					select {
					case out <- found{folder: name, name: file}:
					case <-ctx.Done():
						return
					}
					began = began.Add(time.Since(waits)) // this time was spent waiting
				}
				if n++; n%sweepFiles == 0 {
					if !sleep(ctx, sweepRest*time.Since(began)) {
						return
					}
					began = time.Now()
				}
			}
		}
	}()
}
