//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// neighbour is a user who is not this one.
const neighbour = 65533

// TestNeighbour: a store that is found by walking upwards and belongs to another user is passed over
// and named, and is used if --store or VARVE_STORE names it. Root has its own stores and, under sudo,
// those of the user who called it. Each call is a process of that user.
func TestNeighbour(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root can make a store of another user; TestForeign in internal/locate has the rule")
		return
	}
	dir, err := os.MkdirTemp("", "memctl-neighbour-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "memctl")
	if out, err := exec.Command("cp", path, program).CombinedOutput(); err != nil { // see unprivileged
		t.Fatalf("%v: %s", err, out)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(program, 0o755))
	must(os.Chmod(dir, 0o755))
	memctl := func(uid int, in string, env []string, args ...string) (int, string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = in
		cmd.Env = append(env, "HOME="+in, "PATH="+os.Getenv("PATH"), "TMPDIR="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid), NoSetGroups: true}}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	const you = 65534
	// folder makes one that belongs to a user, and store one of his that all may read.
	folder := func(uid int, name string) string {
		t.Helper()
		at := filepath.Join(dir, name)
		must(os.MkdirAll(at, 0o755))
		must(os.Chown(at, uid, uid))
		return at
	}
	store := func(uid int, at, text string) {
		t.Helper()
		for _, args := range [][]string{{"init", at}, {"put", text, "--id", "a", "--store", at}} {
			if code, out := memctl(uid, filepath.Dir(at), nil, args...); code != cli.CodeOK {
				t.Fatalf("%q: %d: %s", args, code, out)
			}
		}
		must(exec.Command("chmod", "-R", "a+rX", at).Run())
	}
	theirs := func(at string, uid int) string {
		return fmt.Sprintf("%s belongs to user %d and is not used unless --store (or VARVE_STORE) names it", at, uid)
	}
	get := func(uid int, in string, env []string, want, note string, args ...string) {
		t.Helper()
		code, out := memctl(uid, in, env, append([]string{"get", "a", "--content"}, args...)...)
		switch {
		case want == "" && (code != cli.CodeNoStore || !strings.Contains(out, note) || !strings.Contains(out, "--store")):
			t.Errorf("%d in %s: exit code %d, want %d and %q: %s", uid, in, code, cli.CodeNoStore, note, out)
		case want != "" && (code != cli.CodeOK || !strings.Contains(out, want) || !strings.Contains(out, note) || note == "" && strings.Contains(out, "belongs")):
			t.Errorf("%d in %s %v: exit code %d, want %q and %q: %s", uid, in, env, code, want, note, out)
		}
	}

	yours := filepath.Join(folder(you, "home"), "storage")
	store(you, yours, "of your own")
	hers := filepath.Join(folder(neighbour, "home/shared"), "storage")
	store(neighbour, hers, "of a neighbour")
	in := folder(you, "home/shared/deep")
	get(you, in, nil, "of your own", theirs(hers, neighbour))
	get(neighbour, in, nil, "of a neighbour", "")
	get(you, in, nil, "of a neighbour", "", "--store", hers)
	get(you, in, []string{"VARVE_STORE=" + hers}, "of a neighbour", "")
	get(0, in, nil, "", theirs(hers, neighbour))
	get(0, in, []string{"SUDO_UID=65534"}, "of your own", theirs(hers, neighbour))
	get(you, hers, nil, "of your own", theirs(hers, neighbour)) // in the folder itself
	get(you, in, []string{"SUDO_UID=65533"}, "of your own", theirs(hers, neighbour))
	if code, out := memctl(you, in, nil, "status", "--json"); code != cli.CodeOK || strings.Count(out, "belongs to") != 1 {
		t.Errorf("status: %d: %s", code, out)
	}

	// Nothing above it.
	alone := filepath.Join(folder(neighbour, "alone"), "storage")
	store(neighbour, alone, "nothing else")
	get(you, filepath.Dir(alone), nil, "", theirs(alone, neighbour))

	// One that does not say what it is, as stores are made, is named by its folder.
	shut := filepath.Join(folder(neighbour, "shut"), "storage")
	store(neighbour, shut, "nothing for others")
	must(os.Chmod(shut, 0o700))
	get(you, filepath.Dir(shut), nil, "", theirs(shut, neighbour))

	// A link of a neighbour leads to your own store: the folder where it is was not yours to choose.
	link := filepath.Join(folder(neighbour, "linked"), "storage")
	must(os.Symlink(yours, link))
	must(os.Lchown(link, neighbour, neighbour))
	get(you, filepath.Dir(link), nil, "", theirs(link, neighbour))
	get(you, filepath.Dir(link), nil, "of your own", "", "--store", link)

	// A folder such as /tmp is nobody's: what makes it a store is.
	open := folder(you, "open")
	store(neighbour, filepath.Join(folder(neighbour, "made"), "storage"), "put there")
	must(exec.Command("cp", "-a", filepath.Join(dir, "made/storage")+"/.", open).Run())
	must(os.Chown(open, you, you))
	must(os.Chmod(open, 0o1777))
	get(you, open, nil, "", theirs(open, neighbour))
}
