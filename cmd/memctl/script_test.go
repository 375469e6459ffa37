package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/scratch"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

func TestMain(m *testing.M) {
	testscript.Main(scratch.Around(m), map[string]func(){"memctl": main, "memctl-at": memctlAt})
}

func TestScripts(t *testing.T) {
	proofs.ManyProcesses(t, "every line of a script is a process")
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// Nothing of the machine decides: neither its store nor its zone.
			for _, v := range []string{cli.StoreVariable, "NO_COLOR", "VISUAL", "EDITOR", "VARVE_EMBED_URL", "VARVE_EMBED_MODEL",
				"VARVE_EMBED_KEY", "VARVE_EMBED_DIMENSIONS", "OPENAI_API_KEY", cli.AgentVariable, cli.SessionVariable} {
				env.Setenv(v, "")
			}
			env.Setenv("TZ", "UTC")
			env.Setenv("LONG_NAME", strings.Repeat("n", 2048))
			env.Setenv("RED_NAME", "c\x1b[31md")
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":    code,
			"capture": capture,
			"hold":    hold,

			"embedder": embedder,
			"nonsense": nonsense,
		},
	})
}

// code N COMMAND...: the command ends with this exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// capture sets a variable to what the first group of a pattern matches in the standard output of the last command.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME PATTERN")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) < 2 {
		ts.Fatalf("no match for %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}
