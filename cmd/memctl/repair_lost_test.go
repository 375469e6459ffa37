package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// TestRepairTellsLostHistory: neither verify nor the plan of a repair says that nothing is lost where the log
// has lost old versions, in text or in JSON.
func TestRepairTellsLostHistory(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for i := range 12 {
		c.ok("put", fmt.Sprint(i, strings.Repeat("x", 700)), "--id", "a", "-q")
	}
	path := filepath.Join(c.store(), "wal", "00000001.wal")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[3000:5000])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify"}, {"verify", "--json"}, {"repair"}, {"repair", "--json"}} {
		code, out, errOut := c.run("", args...)
		if code != cli.CodeDamage || strings.Contains(out+errOut, "nothing is lost") {
			t.Errorf("memctl %q: exit code %d: %s%s", args, code, out, errOut)
		}
		if args[0] == "repair" && !strings.Contains(out, "loses at least 2 old versions of 1 document that were in ") && !strings.Contains(out, `1 repairable; lost: at least 2 old versions of 1 document that were in `) {
			t.Errorf("memctl %q: %s%s", args, out, errOut)
		}
	}
}
