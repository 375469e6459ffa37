//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
)

// While other processes hold every lock of the store, and where a file of it is a pipe that nobody
// writes to, an answer takes no longer than a person waits.
func TestCompletionDoesNotWait(t *testing.T) {
	t.Parallel()
	locked, piped := newCLI(t), newCLI(t)
	for _, c := range []*inProcess{locked, piped} {
		c.ok("put", "one", "--id", "a")
	}
	locks, err := filepath.Glob(filepath.Join(locked.store(), "wal", "*.lock"))
	if err != nil || len(locks) == 0 {
		t.Fatal(locks, err)
	}
	for _, path := range locks {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"config.json", "memory_index.json", "checkpoint"} {
		path := filepath.Join(piped.store(), name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*inProcess{"locked": locked, "pipes": piped} {
		start := time.Now()
		cmd := command(t, "__complete", "get", "")
		cmd.Dir = c.dir
		out, err := cmd.Output()
		if took := time.Since(start); err != nil || took > 5*time.Second {
			t.Errorf("%s: %v after %v: %s", name, err, took, out)
		}
	}
}

// The scripts work in the shells that they are for.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	proofs.ManyProcesses(t, "shells run memctl")
	c := newCLI(t)
	c.ok("put", "one", "--id", "note-1")
	c.ok("put", "two", "--id", "note-2")
	memctl, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		shell  string
		script string
		want   []string
	}{
		{"bash", `set -u; [ -r /usr/share/bash-completion/bash_completion ] || exit 99
set +u; . /usr/share/bash-completion/bash_completion; . <(memctl completion bash)
compopt() { :; } # which refuses to work outside of a key press
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMPREPLY=(); __start_memctl; printf '%s\n' "${COMPREPLY[@]}"; }
ask memctl get note-; ask memctl get none; ask memctl rep; ask memctl config set at_limit evict_o`,
			[]string{"note-1", "note-2", "", "repair", "evict_oldest"}},
		{"zsh", `autoload -U compinit && compinit -u -D && . <(memctl completion zsh) && (( $+functions[_memctl] )) && echo defined`, []string{"defined"}},
		{"fish", `memctl completion fish | source; complete -C 'memctl get note-'`, []string{"note-1\tone", "note-2\ttwo"}},
	} {
		t.Run(s.shell, func(t *testing.T) {
			tool(t, s.shell)
			cmd := exec.Command(s.shell, "-c", s.script)
			cmd.Dir = c.dir
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(memctl)+":"+os.Getenv("PATH"), "HOME="+t.TempDir(), "VARVE_STORE=")
			var errOut strings.Builder
			cmd.Stderr = &errOut
			out, err := cmd.Output()
			if cmd.ProcessState.ExitCode() == 99 {
				tool(t, "bash-completion") // no program has this name
			}
			var got []string
			for line := range strings.Lines(string(out)) {
				word, about, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				word = strings.TrimRight(word, " ")
				if first, _, ok := strings.Cut(word, " "); ok && s.shell == "bash" {
					word = first // with the description behind it
				}
				if about != "" {
					word += "\t" + about
				}
				got = append(got, word)
			}
			if err != nil || errOut.Len() > 0 || strings.Join(got, "\n") != strings.Join(s.want, "\n") {
				t.Errorf("%v: %q, want %q\n%s", err, got, s.want, errOut.String())
			}
		})
	}
}

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
