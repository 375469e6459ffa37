package postgres_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemctl: memctl keeps a copy in a database, with the password from the environment, clones it, and says what to do
// when the password is wrong or the schema newer. The password is in no file and in no message.
func TestMemctl(t *testing.T) {
	s := shared.get(t)
	dir := t.TempDir()
	bin := filepath.Join(dir, "memctl")
	build := exec.Command("go", "build", "-o", bin, "github.com/varve-db/varve/cmd/memctl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // also under the race detector, which needs cgo
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o := s.options(s.database(t, ""), "notes")
	url := o.URL()
	env := append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "NO_COLOR=1")
	pass := "PGPASSWORD=" + password
	said := ""
	memctl := func(secret string, args ...string) (string, error) {
		t.Helper()
		cmd := exec.Command(bin, args...)
		cmd.Env = append(append([]string{}, env...), secret, "VARVE_STORE="+filepath.Join(dir, "store"))
		out, err := cmd.CombinedOutput()
		said += string(out)
		return string(out), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := memctl(pass, args...)
		if err != nil {
			t.Fatalf("memctl %q: %v\n%s", args, err, out)
		}
		return out
	}
	fails := func(secret, want string, args ...string) {
		t.Helper()
		if out, err := memctl(secret, args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("memctl %q: %v, want %q:\n%s", args, err, want, out)
		}
	}
	must("init", filepath.Join(dir, "store"))
	must("put", "--id", "first", "the text of the first memory")
	fails("PGPASSWORD=wrong", "check the user and PGPASSWORD or ~/.pgpass", "remote", "add", url)
	fails(pass, "TLS", "remote", "add", strings.Replace(url, "schema=notes", "schema=notes&sslmode=verify-full", 1))
	fails(pass, "PGPASSWORD", "remote", "add", strings.Replace(url, "varve@", "varve:secret@", 1))
	must("remote", "add", url)
	must("put", "--id", "second", "the text of the second memory")
	must("remote", "add", url) // sends the new changes
	if out := must("remote", "status"); !strings.Contains(out, "0 B behind") {
		t.Error(out)
	}
	must("remote", "verify", "--read-data")
	clone := filepath.Join(dir, "clone")
	must("clone", url, clone, "--fork")
	if out := must("--store", clone, "get", "second"); !strings.Contains(out, "the second memory") {
		t.Error(out)
	}
	s.do(t, o.Database, "UPDATE notes.remote SET version = 2")
	fails(pass, "newer", "remote", "status")
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == bin {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), password) {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil || strings.Contains(said, password) || strings.Contains(said, "secret@") {
		t.Errorf("the password was printed: %v\n%s", err, said)
	}
}
