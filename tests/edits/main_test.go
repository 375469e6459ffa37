package edits

import (
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }
