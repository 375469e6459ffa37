package redis_test

import (
	"testing"

	"github.com/varve-db/varve/working/redis"
	"github.com/varve-db/varve/working/workingtest"
)

// BenchmarkRedis measures a server that stores nothing durably, and one that syncs every write before it
// answers.
func BenchmarkRedis(b *testing.B) {
	for name, args := range map[string][]string{"volatile": nil, "appendfsync-always": {"--appendonly", "yes", "--appendfsync", "always"}} {
		b.Run(name, func(b *testing.B) {
			s := start(b, args...)
			workingtest.Bench(b, open(b, redis.Options{URL: s.url() + "?pool_size=64"}))
		})
	}
}
