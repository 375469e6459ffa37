package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// A config.json that does not hold removes nothing, whichever command runs, and status says so.
func TestConfigUnknown(t *testing.T) {
	t.Parallel()
	for how, text := range map[string]string{
		"mark":  "\xef\xbb\xbf" + `{"varve":1,"history_bytes":1099511627776,"adopt_deletions":false}`,
		"empty": "", "missing": "-",
		"member": `{"varve":1,"history_bytes":"1 TiB","adopt_deletions":false}`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			dir := filepath.Join(c.dir, "old")
			makeHistory(t, dir)
			on := func(args ...string) []string { return append(args, "--store", dir) }
			c.ok(on("config", "set", "history_bytes", "1099511627776")...)
			c.ok(on("config", "set", "adopt_deletions", "false")...)
			type state struct {
				Bytes    int64 `json:"history_bytes"`
				Memories int64
				Unknown  bool `json:"settings_unknown"`
				Problems []string
			}
			status := func() (s state) {
				t.Helper()
				_, out, errOut := c.run("", on("status", "--json")...)
				if err := json.Unmarshal([]byte(out), &s); err != nil {
					t.Fatal(err, out, errOut)
				}
				return s
			}
			before := status()
			if before.Bytes == 0 || before.Unknown {
				t.Fatalf("%+v", before)
			}
			name := filepath.Join(dir, "config.json")
			right, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if text == "-" {
				err = os.Remove(name)
			} else {
				err = os.WriteFile(name, []byte(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.ok(on("put", "x", "--id", "new")...)
			c.ok(on("flush")...)
			memories := filepath.Join(dir, "memories")
			old := time.Now().Add(-time.Hour) // nothing has changed in the folder for a while
			if err := errors.Join(os.Remove(filepath.Join(memories, "k5.json")), os.Chtimes(memories, old, old)); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"new", "k5", "k5"} {
				c.ok(on("get", id)...)
			}
			s := status()
			if s.Bytes < before.Bytes || s.Memories != before.Memories+1 || !s.Unknown || len(s.Problems) != 1 {
				t.Errorf("%+v, before %+v", s, before)
			}
			code, out, _ := c.run("", on("status")...)
			if code != cli.CodeDamage || !strings.Contains(out, "no history is removed") ||
				!strings.Contains(out, "correct or restore config.json") {
				t.Errorf("exit code %d: %s", code, out)
			}
			// A repair writes a file that is valid, and that removes no more than the one that cannot be read.
			c.ok(on("repair", "--apply")...)
			c.ok(on("put", "y", "--id", "newer")...)
			c.ok(on("flush")...)
			if s := status(); s.Bytes < before.Bytes || s.Unknown {
				t.Errorf("repaired: %+v", s)
			}
			if got := c.ok(on("config", "get", "adopt_deletions")...); strings.TrimSpace(got) != "false" {
				t.Errorf("repaired: adopt_deletions is %s", got)
			}
			if err := os.WriteFile(name, right, 0o600); err != nil {
				t.Fatal(err)
			}
			if s := status(); s.Unknown || len(s.Problems) > 0 {
				t.Errorf("put back: %+v", s)
			}
		})
	}
}
