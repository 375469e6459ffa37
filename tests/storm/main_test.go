package storm

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, jobs) }

// jobs are the jobs of the processes that the tests start.
var jobs = storetest.Jobs(map[string]storetest.Job{"storm": stormChild, "few files": fewFiles})
