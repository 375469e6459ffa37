package counts

import (
	"fmt"
	"testing"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/settings"
)

// TestEvictionListBounded: a memory that is written again and again, and would go
// first, does not make the list of those that go grow.
func TestEvictionListBounded(t *testing.T) {
	q := &queue{most: leastQueue}
	for i := range q.most {
		q.list = append(q.list, Candidate{ID: fmt.Sprint(i), score: 1, Version: uint64(i)})
	}
	x := Evictions{policy: settings.AtLimitEvictLowest, lists: map[string]*queue{"": q}}
	for i := range 10000 {
		x.feed("again", &index.Entry{Version: uint64(1000 + i), UpdatedAt: time.Unix(int64(i), 0)})
	}
	if n := len(x.lists[""].list); n > 2*leastQueue {
		t.Errorf("%d are in the list", n)
	}
}
