package processes

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

// The test binary is its own second process.
func TestMain(m *testing.M) { storetest.Main(m, workChild) }
