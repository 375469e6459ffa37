package memorystores

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestConfigChanges: a store is found while its config.json keeps changing.
func TestConfigChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for at := time.Now(); ; at = at.Add(time.Millisecond) {
			select {
			case <-stop:
				return
			default:
			}
			if err := os.Chtimes(filepath.Join(s.dir, store[1:], "config.json"), at, at); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		s.want(200, "a", "GET", store, nil)
	}
	close(stop)
	all.Wait()
}
