package redis_test

import (
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/redis"
)

// F46: 100 checkpoints of a scope of 1 MB take the size of the changes between them, also when the
// oldest are removed, and every one is complete.
func TestF46Size(t *testing.T) {
	s := start(t)
	admin := s.admin(t)
	h := open(t, redis.Options{URL: s.url()})
	m, err := working.Open(t.Context(), h, scope, &working.Options{Checkpoints: 50})
	ok(t, err)
	all := map[string]any{}
	for i := range 1000 {
		all[fmt.Sprint("k", i)] = strings.Repeat("x", 1000)
	}
	ok(t, m.SetMany(t.Context(), all))
	alone := used(t, admin)
	var first int64
	for i := range 100 {
		ok(t, m.Set(t.Context(), fmt.Sprint("k", i%7), strings.Repeat("y", 1000+i)))
		_, err := m.Checkpoint(t.Context(), "")
		ok(t, err)
		if i == 0 {
			first = used(t, admin)
		}
	}
	after := used(t, admin)
	if after-first > 50*4000 {
		t.Errorf("%d bytes, with the first checkpoint %d, with 50 kept of 100 %d", alone, first, after)
	}
	t.Logf("the scope %d bytes, with the first checkpoint %d, with 50 kept of 100 %d", alone, first, after)
	list, err := m.Checkpoints(t.Context())
	ok(t, err)
	for _, cp := range list {
		if _, err := m.DeleteCheckpoint(t.Context(), cp.ID); err != nil {
			t.Error(err)
		}
	}
	if left := used(t, admin); left > alone+100_000 {
		t.Errorf("%d bytes when all checkpoints are gone, %d before", left, alone)
	}
	_, err = m.Drop(t.Context())
	ok(t, err)
	if n := admin.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left of a scope that was dropped: %v", n, admin.Keys(t.Context(), "*").Val())
	}
}

// used returns the memory that all keys take.
func used(t *testing.T, c *goredis.Client) (sum int64) {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	ok(t, err)
	for _, key := range keys {
		n, err := c.MemoryUsage(t.Context(), key, 0).Result()
		ok(t, err)
		sum += n
	}
	return sum
}
