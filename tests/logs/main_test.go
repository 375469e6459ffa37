package logs

import (
	"testing"

	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// jobs are the jobs of the processes that the tests start.
var jobs = storetest.Jobs(map[string]storetest.Job{
	"committing": committing,
	"holding":    holding,
	"idle":       idling,
	"lag":        lagging,
	"load":       fixture.Loading,
	"writer":     writing,
	"writing":    writingChild,
})

func TestMain(m *testing.M) { storetest.Main(m, jobs) }
