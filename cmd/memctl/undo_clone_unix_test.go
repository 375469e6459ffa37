//go:build unix

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// tool is a program that a test needs.
func tool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("VARVE_CI") != "" {
			t.Fatalf("%s is missing: apt-get install %s", name, name)
		}
		t.Skipf("%s is missing: apt-get install %s", name, name)
	}
}

// inFolder runs a program as somebody with a folder of his own for state, and gives its exit
// code and what it said.
func inFolder(t *testing.T, who, dir string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if args[0] == "memctl" {
		cmd = command(t, args[1:]...)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+who, "XDG_STATE_HOME="+filepath.Join(who, "state"), "VARVE_STORE=",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@x")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return 0, string(out)
}

func mustRun(t *testing.T, who, dir string, args ...string) string {
	t.Helper()
	code, out := inFolder(t, who, dir, args...)
	if code != 0 {
		t.Fatalf("%q ended with %d: %s", args, code, out)
	}
	return out
}

// TestUndoInClone: what somebody publishes, with all that git would ignore and with the
// key of his own repairs, has memctl repair --undo touch nothing, in a clone as in what an
// archive unpacks to. What is repaired there is undone there.
func TestUndoInClone(t *testing.T) {
	proofs.ManyProcesses(t, "some forty processes")
	t.Parallel()
	tool(t, "git")
	tool(t, "tar")
	root := t.TempDir()
	in := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	folder := func(elem ...string) string {
		if err := os.MkdirAll(in(elem...), 0o700); err != nil {
			t.Fatal(err)
		}
		return in(elem...)
	}
	put := func(text string, elem ...string) {
		if err := os.WriteFile(in(elem...), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other, repo := folder("other"), folder("other", "repo")
	mustRun(t, other, repo, "memctl", "init", "storage")
	for i := range 3 {
		mustRun(t, other, repo, "memctl", "put", fmt.Sprintf("memory %d, with some text in it", i), "--id", fmt.Sprintf("m%d", i), "-q")
	}
	mustRun(t, other, repo, "memctl", "flush", "-q")
	put("rotten", "other", "repo", "storage", "memories", "m1.json")
	mustRun(t, other, repo, "memctl", "repair", "--apply") // true, and not the victim's
	evil := "evil\n"
	put(evil, "other", "repo", "storage", "quarantine", "evil")
	kept := fmt.Sprintf(`{"kept":"quarantine/evil","size":5,"mtime":"2026-01-01T00:00:00Z","hash":"sha256:%x"}`, sha256.Sum256([]byte(evil)))
	put(strings.Join([]string{
		`{"repair":"99991231-235959-000000-ffffff","when":"9999-12-31T23:59:59Z","folder":1,"mac":"` + strings.Repeat("0", 64) + `"}`,
		`{"n":1,"do":"restore the file","path":"../../home/.bashrc","id":"x","before":` + kept + `}`,
		`{"n":2,"do":"restore the file","path":"../../home/.profile","id":"x"}`,
		`{"n":3,"do":"set aside","path":"memories/taken","before":{"kept":"../../home/.ssh","size":0,"mtime":"2026-01-01T00:00:00Z"}}`,
		`{"n":4,"do":"restore the file","path":"memories/leak.json","before":{"kept":"../../home/.profile","size":2,"mtime":"2026-01-01T00:00:00Z","hash":"` + fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("x\n"))) + `"}}`,
		`{"ended":true}`, "",
	}, "\n"), "other", "repo", "storage", "quarantine", "repair-99991231-235959-000000-ffffff.undo.jsonl")
	mustRun(t, other, repo, "cp", "-r", filepath.Join(other, "state"), "state")
	mustRun(t, other, repo, "git", "init", "-q")
	mustRun(t, other, repo, "git", "add", "-A", "-f")
	mustRun(t, other, repo, "git", "commit", "-qm", "all of it")
	mustRun(t, other, root, "tar", "-cf", in("other.tar"), "-C", repo, ".")
	if files := mustRun(t, other, repo, "git", "ls-files"); !strings.Contains(files, "storage/wal/0") || !strings.Contains(files, "undo.key") {
		t.Fatalf("git has not all of it: %s", files)
	}

	for _, keyed := range []bool{false, true} { // whether the victim has repaired something
		for _, how := range []string{"clone", "archive"} {
			t.Run(fmt.Sprintf("%s_key=%v", how, keyed), func(t *testing.T) {
				victim := fmt.Sprintf("victim-%s-%v", how, keyed)
				home, work := folder(victim, "home"), folder(victim, "work")
				folder(victim, "home", ".ssh")
				put("export PATH\n", victim, "home", ".bashrc")
				put("x\n", victim, "home", ".profile")
				put("a private key\n", victim, "home", ".ssh", "id")
				if keyed {
					mustRun(t, home, root, "memctl", "init", in(victim, "mine"))
					mustRun(t, home, root, "memctl", "put", "x", "--id", "x", "-q", "--store", in(victim, "mine"))
					mustRun(t, home, root, "memctl", "flush", "-q", "--store", in(victim, "mine"))
					put("rotten", victim, "mine", "memories", "x.json")
					mustRun(t, home, root, "memctl", "repair", "--apply", "--store", in(victim, "mine"))
				}
				if how == "clone" {
					mustRun(t, home, in(victim), "git", "clone", "-q", repo, "work")
				} else {
					mustRun(t, home, work, "tar", "-xf", in("other.tar"))
				}
				store := filepath.Join(work, "storage")
				names, err := filepath.Glob(filepath.Join(store, "quarantine", "repair-*.undo.jsonl"))
				if err != nil || len(names) != 2 {
					t.Fatal(names, err)
				}
				was, inStore := snapshot(t, home), snapshot(t, store)
				ids := []string{""}
				for _, name := range names {
					ids = append(ids, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "repair-"), ".undo.jsonl"))
				}
				for _, id := range ids {
					args := []string{"memctl", "repair", "--undo"}
					if id != "" {
						args = append(args, id)
					}
					code, out := inFolder(t, home, work, args...)
					if code != cli.CodeRefused || !strings.Contains(out, "is refused") || !strings.Contains(out, "quarantine/") {
						t.Errorf("%q ended with %d: %s", args, code, out)
					}
				}
				if now := snapshot(t, home); now != was {
					t.Errorf("the home is now\n%s\nbefore\n%s", now, was)
				}
				if now := snapshot(t, store); now != inStore {
					t.Errorf("the store is now\n%s\nbefore\n%s", now, inStore)
				}
				// What is repaired here is undone here, by its id: the forged one is newer by name.
				mustRun(t, home, work, "memctl", "flush", "-q")
				put("rotten", victim, "work", "storage", "memories", "m2.json")
				out := mustRun(t, home, work, "memctl", "repair", "--apply")
				_, id, ok := strings.Cut(out, "memctl repair --undo ")
				if !ok {
					t.Fatal(out)
				}
				id = strings.Fields(id)[0]
				if code, out := inFolder(t, home, work, "memctl", "repair", "--undo"); code != cli.CodeRefused || !strings.Contains(out, "--undo "+id) {
					t.Errorf("%d: %s", code, out)
				}
				mustRun(t, home, work, "memctl", "repair", "--undo", id)
				if b, err := os.ReadFile(filepath.Join(store, "memories", "m2.json")); err != nil || string(b) != "rotten" {
					t.Errorf("%q, %v", b, err)
				}
			})
		}
	}
}
