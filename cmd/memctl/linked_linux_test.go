package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
)

// TestStatusOfLinks: status says of a folder of hard links to a store why nothing can be written to
// it, as a write does, and that this is no damage; of the store it says nothing of the kind.
func TestStatusOfLinks(t *testing.T) {
	t.Parallel()
	c := &inProcess{t, t.TempDir()}
	c.ok("put", "before", "--id", "a", "--store", c.storeMade())
	linked := c.store() + "-linked"
	if out, err := exec.Command("cp", "-al", c.store(), linked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, of := range []struct {
		dir      string
		writable bool
	}{{linked, false}, {c.store(), true}, {linked, false}} {
		var s upkeep.State
		out := c.ok("status", "--json", "--store", of.dir)
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatal(err)
		}
		if s.Writable != of.writable || strings.Contains(s.ReadOnly, "cp -a "+linked) == of.writable || len(s.Problems) > 0 {
			t.Errorf("%s: %s", of.dir, out)
		}
	}
	if out := c.ok("status", "--store", linked); !strings.Contains(out, "\nread-only ") {
		t.Error(out)
	}
	if code, _, out := c.run("", "put", "x", "--store", linked); code != cli.CodePermission || !strings.Contains(out, "cp -a "+linked) {
		t.Errorf("put: exit code %d: %s", code, out)
	}
}
