package working_test

import (
	"testing"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/workingtest"
)

func BenchmarkMemory(b *testing.B) { workingtest.Bench(b, working.NewLocal(nil)) }
