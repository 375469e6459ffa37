package storm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

// The test binary is its own second process.
func TestMain(m *testing.M) { storetest.Main(m, child) }

// child is what a process that a test has started does: name:arg.
func child(ctx context.Context, job, dir string) error {
	switch name, arg, _ := strings.Cut(job, ":"); name {
	case "storm":
		return stormChild(ctx, arg, dir)
	case "few files":
		return fewFiles(ctx, arg, dir)
	}
	return fmt.Errorf("no such job: %s", job)
}
