package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// A unit is written once, only over one of its own, and removed again.
func TestService(t *testing.T) {
	t.Parallel()
	shapes := drawnShapes(t)
	c := newCLI(t)
	config := t.TempDir()
	memctl := func(args ...string) (int, string) {
		t.Helper()
		cmd := command(t, args...)
		cmd.Dir = c.dir
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+config, "XDG_RUNTIME_DIR="+t.TempDir(), "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(config, "none"), "VARVE_STORE=")
		var errOut strings.Builder
		cmd.Stderr = &errOut
		out, _ := cmd.Output()
		if len(out) == 0 {
			out = []byte(errOut.String())
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	document := func(row string, args ...string) map[string]any {
		t.Helper()
		code, out := memctl(append(args, "--json")...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.CodeOK {
			t.Fatalf("%q: exit code %d: %v: %s", args, code, err, out)
		}
		shapes[row].check(t, row, v)
		return v
	}
	if code, out := memctl("service", "uninstall"); code != cli.CodeNotFound {
		t.Errorf("nothing to remove: exit code %d: %s", code, out)
	}
	code, printed := memctl("service", "install", "--print")
	if _, err := os.Stat(filepath.Join(config, "systemd")); code != cli.CodeOK || err == nil {
		t.Errorf("--print: exit code %d, %v: %s", code, err, printed)
	}
	file := document("service install", "service", "install", "--no-start")["file"].(string)
	text, err := os.ReadFile(file)
	whole, lerr := filepath.EvalSymlinks(c.store())
	if err != nil || lerr != nil || string(text) != printed || !strings.Contains(printed, ` --store "`+whole+`" watch --adopt`) ||
		filepath.Dir(file) != filepath.Join(config, "systemd", "user") {
		t.Errorf("%s: %v\n%s", file, err, text)
	}
	_, line, _ := strings.Cut(printed, "ExecStart=")
	if program, _, _ := strings.Cut(strings.TrimPrefix(line, `"`), `"`); !filepath.IsAbs(program) {
		t.Errorf("%q is no absolute path", program)
	}

	// Without systemd to talk to, the unit stays, and the message says what remains to be done.
	if _, err := exec.LookPath("systemctl"); err == nil {
		if code, out := memctl("service", "install"); code == cli.CodeOK || !strings.Contains(out, "systemctl --user enable --now") {
			t.Errorf("without systemd: exit code %d: %s", code, out)
		}
	}
	document("service uninstall", "service", "uninstall")
	if _, err := os.Stat(file); err == nil {
		t.Errorf("%s is still there", file)
	}

	// A store that is gone, and that was named through a link, still has the service that it got.
	links := t.TempDir()
	for name, to := range map[string]string{"above": c.dir, "relative": "above/gone", "store": filepath.Join(c.dir, "gone", "storage"), "twice": "store"} {
		if err := os.Symlink(to, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"above/gone/storage", "relative/storage", "store", "twice"} {
		path := filepath.Join(links, name)
		for _, args := range [][]string{{"init", filepath.Join(c.dir, "gone", "storage")}, {"--store", path, "service", "install", "--no-start"}} {
			if code, out := memctl(args...); code != cli.CodeOK {
				t.Fatalf("%s: memctl %q: exit code %d: %s", name, args, code, out)
			}
		}
		if err := os.RemoveAll(filepath.Join(c.dir, "gone")); err != nil {
			t.Fatal(err)
		}
		if code, out := memctl("--store", path, "service", "uninstall"); code != cli.CodeOK {
			t.Errorf("%s: uninstall of a store that is gone: exit code %d: %s", name, code, out)
		}
	}

	// Nothing of somebody else's goes: a unit that memctl did not write, or that was changed since.
	for text, says := range map[string]string{"[Unit]\n": "was not written by memctl", printed + "# mine\n": "was changed after memctl"} {
		writeFile(t, file, text)
		for _, args := range [][]string{{"service", "install", "--no-start"}, {"service", "uninstall"}} {
			if code, out := memctl(args...); code != cli.CodeRefused || !strings.Contains(out, says) {
				t.Errorf("%q over %q: exit code %d: %s", args, text, code, out)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
	if code, out := memctl("service", "install", "--store", filepath.Join(c.dir, "none")); code != cli.CodeNoStore {
		t.Errorf("no store: exit code %d: %s", code, out)
	}
	if code, out := memctl("service", "install", "--print", "--json"); code != 64 {
		t.Errorf("--print --json: exit code %d: %s", code, out)
	}
}
