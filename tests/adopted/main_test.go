package adopted

import (
	"testing"
	"time"

	"github.com/varve-db/varve/internal/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main(m, storetest.Jobs(map[string]storetest.Job{"adopt": adopting, "save": saving, "put": putting}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// emptied is how much longer a file is waited for that has just been truncated.
const emptied = 2 * time.Second
