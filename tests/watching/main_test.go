package watching

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/storetest"
)

// The test binary is its own second process.
func TestMain(m *testing.M) { storetest.Main(m, child) }

// child does what a process that a test has started is for: name:arg.
func child(ctx context.Context, job, dir string) error {
	name, arg, _ := strings.Cut(job, ":")
	run := map[string]func(ctx context.Context, arg, dir string) error{
		"churn": churn,
	}[name]
	if run == nil {
		return fmt.Errorf("no such job: %s", job)
	}
	return run(ctx, arg, dir)
}
