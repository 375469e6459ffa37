package linear

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

// The test binary is also each of the other processes of a history.
func TestMain(m *testing.M) { storetest.Main(m, linearChild) }
