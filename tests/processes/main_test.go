package processes

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

// The test binary is also the second process.
func TestMain(m *testing.M) { storetest.Main(m, workChild) }
