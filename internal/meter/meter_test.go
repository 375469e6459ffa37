package meter

import (
	"sync"
	"testing"
	"time"
)

func TestMeters(t *testing.T) {
	t.Parallel()
	var m Meters
	var all sync.WaitGroup
	const goroutines, each = 8, 1000
	for range goroutines {
		all.Go(func() {
			for i := range each {
				m.End(Get, m.Begin(Get), i%4 == 0)
				m.Took(Sync, 60*time.Microsecond)
			}
		})
	}
	all.Wait()
	r := m.Read(Get)
	if r.OK != goroutines*each*3/4 || r.Failed != goroutines*each/4 {
		t.Errorf("%d and %d", r.OK, r.Failed)
	}
	timed := uint64(0)
	for _, n := range r.Buckets {
		timed += n
	}
	if timed == 0 || timed == goroutines*each {
		t.Errorf("%d of %d were timed", timed, goroutines*each)
	}
	if r := m.Read(Sync); r.Buckets[1] != goroutines*each || r.Sum != goroutines*each*60*time.Microsecond {
		t.Errorf("%+v", r)
	}
	m.Took(Flush, time.Hour)
	m.Took(Flush, Bounds[0])
	if r := m.Read(Flush); r.Buckets[len(Bounds)] != 1 || r.Buckets[0] != 1 {
		t.Errorf("%+v", r)
	}
	var none *Meters
	none.Took(Flush, 1)
	none.End(Put, none.Begin(Put), false)
	if r := none.Read(Put); r.OK != 0 {
		t.Error(r)
	}
}
