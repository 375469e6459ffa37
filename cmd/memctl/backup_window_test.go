package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// The window that a backup tells of is the one that restore --at takes: both ends, and nothing
// beyond them.
func TestBackupWindow(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.ok("put", "one", "--id", "a", "-q")
	c.ok("put", "two", "--id", "a", "-q")
	at := filepath.Join(c.dir, "b")
	var d struct {
		Backup struct{ From, To time.Time }
	}
	for _, args := range [][]string{{"backup", at, "--json"}, {"backup", "--check", at, "--json"}} {
		if err := json.Unmarshal([]byte(c.ok(args...)), &d); err != nil {
			t.Fatal(err)
		}
		if d.Backup.From.IsZero() || !d.Backup.To.After(d.Backup.From) {
			t.Fatalf("memctl %q: %+v", args, d.Backup)
		}
	}
	text := c.ok("backup", "--check", at)
	for _, end := range []time.Time{d.Backup.From, d.Backup.To} {
		if !strings.Contains(text, end.Format(time.RFC3339Nano)) {
			t.Errorf("%s is not in %s", end, text)
		}
	}
	for _, try := range []struct {
		at   time.Time
		code int
	}{
		{d.Backup.From, 0}, {d.Backup.To, 0},
		{d.Backup.From.Add(-time.Microsecond), cli.CodeRefused}, {d.Backup.To.Add(time.Microsecond), cli.CodeRefused},
	} {
		if code, _, errOut := c.run("", "restore", at, filepath.Join(t.TempDir(), "r"), "--at", try.at.Format(time.RFC3339Nano)); code != try.code {
			t.Errorf("restore --at %s: exit code %d, %d is expected: %s", try.at.Format(time.RFC3339Nano), code, try.code, errOut)
		}
	}
}
