package varve

import (
	"testing"

	"github.com/varve-db/varve/working/workingtest"
)

// BenchmarkWorking measures working memory in a store: each set is durable. Beside
// it stand BenchmarkMemory in working/ and BenchmarkRedis in working/redis.
func BenchmarkWorking(b *testing.B) {
	workingtest.Bench(b, openTest(b, b.TempDir(), nil).Working().Home())
}
