package vector

import (
	"testing"

	"github.com/varve-db/varve/internal/scratch"
)

func TestMain(m *testing.M) { scratch.Main(m) }
