package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// condition is something that may go wrong around a command.
type condition struct {
	name string
	// script runs the command, "$@", for sh; $DIR is the folder around the store.
	script string
	// prepare changes the folder before.
	prepare func(t *testing.T, dir string)
}

var conditions = []condition{
	{name: "nothing is wrong", script: `"$@" >"$DIR/out"`},
	{name: "output is full", script: `"$@" >/dev/full`},
	{name: "pipe is closed", script: `mkfifo "$DIR/pipe"; exec 3<>"$DIR/pipe" 4>"$DIR/pipe" 3<&-; "$@" >&4`},
	{name: "store is read-only", script: `
		mount --bind "$DIR/storage" "$DIR/storage" &&
		mount -o remount,ro,bind "$DIR/storage" &&
		"$@" >"$DIR/out"`},
	{name: "config is cut off", script: `"$@" >"$DIR/out"`, prepare: func(t *testing.T, dir string) {
		writeFile(t, filepath.Join(dir, "storage", "config.json"), `{"varve":1,`)
	}},
	{name: "a file is another's", script: `"$@" >"$DIR/out"`, prepare: func(t *testing.T, dir string) {
		name := filepath.Join(dir, "storage", "memories", "b.json")
		if err := os.Chown(name, 4711, 4711); err != nil {
			t.Error(err)
		}
	}},
}

// mayEnd reports whether SIGPIPE may end a command: it may end one that only reads.
func mayEnd(c *commandCase, name string) bool {
	return !c.writes && !slices.Contains([]string{"backup", "restore", "migrate", "repair"}, name)
}

// answersExcept are commands that have no store, wait for a signal, or are about another one.
var answersExcept = []string{"mcp", "serve", "ui", "serve token add", "serve token list", "serve token remove", "watch",
	"edit", "demo", "service install", "service uninstall", "remote follow", "remote take", "clone"}

// TestAnswers: each command under each condition. What it answers is what happened: with exit status 0 nothing on
// stderr is an error, with another one an error and a remedy are there, and a failure says that something is durable
// exactly when the store has more commits than before. With -v the table is shown.
func TestAnswers(t *testing.T) {
	proofs.ManyProcesses(t, "every command under every condition is a process")
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("VARVE_LONG=1 as root: the store is mounted read-only, and a file is given to another user")
	}
	s := newWaits(t)
	var names []string
	for _, name := range slices.Sorted(maps.Keys(commandCases)) {
		if !slices.Contains(answersExcept, name) {
			names = append(names, name)
		}
	}
	table := make([][]string, len(names))
	slots := make(chan struct{}, 4)
	var all sync.WaitGroup
	for i, name := range names {
		table[i] = make([]string, len(conditions))
		for j, c := range conditions {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				table[i][j] = s.answer(t, name, &c)
			})
		}
	}
	all.Wait()
	var text strings.Builder
	for i, name := range names {
		fmt.Fprintf(&text, "%-28s", "memctl "+name)
		for _, cell := range table[i] {
			fmt.Fprintf(&text, " %-12s", cell)
		}
		text.WriteByte('\n')
	}
	for j, c := range conditions {
		fmt.Fprintf(&text, "column %d: %s\n", j+1, c.name)
	}
	t.Logf("exit status, and + where something is durable:\n%s", text.String())
}

// answer runs a command under a condition and returns its cell in the table.
func (s *waits) answer(t *testing.T, name string, c *condition) string {
	w := s.waiter(t, name)
	defer os.RemoveAll(w.dir)
	if c.prepare != nil {
		c.prepare(t, w.dir)
	}
	store := filepath.Join(w.dir, "storage")
	before := durableIn(t, store)
	one := commandCases[name]
	args := append([]string{"-m", "sh", "-c", c.script, "sh", s.memctl}, one.with(name, w.dir, s.words)...)
	cmd := exec.Command("unshare", args...) // a mount of the script ends with it
	cmd.Dir, cmd.Env = w.cmd.Dir, append(w.cmd.Env, "DIR="+w.dir)
	var errOut bytes.Buffer
	cmd.Stderr, cmd.Stdin = &errOut, strings.NewReader("")
	_ = cmd.Run()
	code, said := cmd.ProcessState.ExitCode(), errOut.String()
	more := durableIn(t, store) > before
	bad := func(what string) {
		t.Errorf("memctl %q, %s: exit status %d: %s\n%s", args[6:], c.name, code, what, said)
	}
	var failed, remedy bool
	for line := range strings.Lines(said) {
		failed = failed || strings.HasPrefix(line, "memctl: ") && !strings.HasPrefix(line, "memctl: note:")
		remedy = remedy || strings.HasPrefix(line, "  → ")
	}
	told := strings.Contains(said, "committed and durable")
	switch {
	case code == cli.CodeOK && remedy:
		bad("a remedy for nothing")
	case code == 128+int(syscall.SIGPIPE) && c.name == "pipe is closed" && mayEnd(&one, name):
	case code < 0 || code > 128 && code != cli.CodeInterrupted:
		bad("it was ended by a signal")
	case code != cli.CodeOK && !failed && !c.listed(w.dir):
		bad("a failure without a word")
	case code != cli.CodeOK && more && !told:
		bad("it does not say that its write is durable")
	case !more && told:
		bad("it says that something is durable, and nothing is")
	case more && (strings.Contains(said, "run the command again") || strings.Contains(said, "nothing was written")):
		bad("advice that leads to a second write")
	case c.name == "output is full" && !one.silent && name != "working checkpoint diff" && code == cli.CodeOK:
		bad("a full output is not told")
	}
	cell := fmt.Sprint(code)
	if more {
		cell += "+"
	}
	return cell
}

// listed reports whether stdout has what is wrong, as that of status and verify does.
func (c *condition) listed(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	return err == nil && strings.Contains(string(b), "config.json")
}

// durableIn returns the position up to which the log of a store is durable; 0 if the store cannot be opened, as after
// a migration.
func durableIn(t *testing.T, store string) uint64 {
	st, err := varve.Open(t.Context(), store, &varve.Options{ReadOnly: true, NoBackground: true})
	if err != nil {
		return 0
	}
	defer st.Close()
	return st.Admin().Stats().Durable
}
