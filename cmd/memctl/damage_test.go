package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// TestDamage runs testdata/damage.sh: the script that shows what verify and
// repair make of thirty-six kinds of damage; on one that is made here, and in the long proofs
// on the real store of 358 memories where it is.
func TestDamage(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	cl := &inProcess{t, t.TempDir()}
	if source := proofs.FindSharedData("synthians-6ac7868"); proofs.Long() && source != "" {
		cl.ok("import", source, "--store", cl.store())
		damage(t, cl.store())
		return
	}
	cl.ok("init", cl.store())
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, "{\"id\":\"m%d\",\"content\":\"memory %d, %s\",\"embedding\":[%d,%d,1,%d,2,-1,%d,%d]}\n", i, i, strings.Repeat("and some more of it ", i), i%7-3, i%5, i%3, i%11-5, i)
	}
	file := filepath.Join(cl.dir, "all.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cl.ok("import", file, "--store", cl.store())
	damage(t, cl.store())
}

func damage(t *testing.T, store string) {
	t.Helper()
	proofs.ManyProcesses(t, "every line of the script is a process")
	for _, tool := range []string{"sh", "git", "dd", "truncate", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not there; the script needs it", tool)
		}
	}
	bin := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	memctl := filepath.Join(bin, "memctl")
	if err := os.Symlink(exe, memctl); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	cmd := exec.Command("sh", filepath.Join("testdata", "damage.sh"), store)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+t.TempDir(), "VARVE_STORE=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(string(out)))
	}
	t.Logf("%s", out)
}

func tail(s string) string { return s[max(0, len(s)-4000):] }
