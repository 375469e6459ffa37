package limits

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

// jobs are the jobs of the processes that the tests start.
var jobs = storetest.Jobs(map[string]storetest.Job{
	"limit": limitChild,
})

func TestMain(m *testing.M) { storetest.Main(m, jobs) }
