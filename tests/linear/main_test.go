package linear

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

// The test binary is its own second process: each is one of a history.
func TestMain(m *testing.M) { storetest.Main(m, linearChild) }
