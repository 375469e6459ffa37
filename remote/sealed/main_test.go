package sealed

import (
	"os"
	"testing"

	"github.com/varve-db/varve/internal/scratch"
)

func TestMain(m *testing.M) { os.Exit(scratch.Around(m).Run()) }
