package users

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

// The test binary is also the process of each user.
func TestMain(m *testing.M) { storetest.Main(m, child) }
