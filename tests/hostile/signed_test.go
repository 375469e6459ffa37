//go:build linux || darwin

package hostile

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/tests/forgery"
)

// forged returns the kinds with invalid content in a valid form: what package forgery signs, notes and
// manifests that name places outside, and the store as a clone.
func forged() (all []kind) {
	for _, f := range forgery.All() {
		file := f.File
		if file == "" {
			file = "wal"
		}
		all = append(all, kind{name: "signed " + f.Name, at: storeDir + "/" + file, stays: true, make: func(b box, _, _ string, _ fs.FileInfo) error {
			return f.Make(b.path(storeDir))
		}})
	}
	note := func(at, name, text string) {
		all = append(all, kind{name: name, at: storeDir + "/" + at, closed: strings.HasSuffix(at, "d.json") || strings.HasPrefix(at, "migrate"), make: func(b box, path, _ string, _ fs.FileInfo) error {
			return os.WriteFile(path, []byte(strings.ReplaceAll(text, "{box}", b.dir)), 0o600)
		}})
	}
	const id = "11111111-1111-4111-8111-111111111111"
	for _, to := range []string{"{box}/" + otherDir, "{box}/" + storeDir, "{box}/" + secretDir, "/nothing\\u001b[31m"} {
		text := fmt.Sprintf(`{"varve_moved":1,"id":%q,"store":%q,"to":"%s","when":"2026-01-01T00:00:00Z"}`+"\n", id, id, to)
		note("moved.json", "note to "+filepath.Base(to), text)
		note("wal/moved.json", "note to "+filepath.Base(to), text)
		for _, state := range []string{"copying", "ready"} {
			note("migrate.json", state+" from "+filepath.Base(to),
				fmt.Sprintf(`{"varve_migration":1,"id":%q,"store":%q,"from":"%s","began":"2026-01-01T00:00:00Z","state":%q,"lsn":72}`+"\n", id, id, to, state))
		}
	}
	kept := fmt.Sprintf(`{"kept":"quarantine/evil","size":5,"mtime":"2026-01-01T00:00:00Z","hash":"sha256:%x"}`, sha256.Sum256([]byte("evil\n")))
	note("quarantine/repair-9999.undo.jsonl", "manifest", strings.Join([]string{
		`{"repair":"9999","when":"9999-12-31T23:59:59Z","folder":1,"mac":"` + strings.Repeat("0", 64) + `"}`,
		`{"n":1,"do":"restore the file","path":"../../` + homeDir + `/.bashrc","id":"x","before":` + kept + `}`,
		`{"n":2,"do":"restore the file","path":"../../` + secretDir + `/id_rsa","id":"x"}`,
		`{"n":3,"do":"set aside","path":"memories/taken","before":{"kept":"../../` + homeDir + `/.ssh","size":0,"mtime":"2026-01-01T00:00:00Z"}}`,
		`{"ended":true}`, "",
	}, "\n"))
	for _, how := range []string{"clone", "clone-all"} {
		all = append(all, kind{name: how, at: storeDir, stays: true, make: func(b box, path, _ string, _ fs.FileInfo) error {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return copyTree(filepath.Join(base, how, storeDir), path)
		}})
	}
	return all
}

// clones makes the copies that git makes of the project: of the files that it tracks by default, and of
// all.
func (tp *template) clones() error {
	git := func(dir string, args ...string) error {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@x")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	for _, how := range []string{"clone", "clone-all"} {
		origin := filepath.Join(base, how+".origin")
		if err := copyTree(tp.dir, origin); err != nil {
			return err
		}
		add := []string{"add", "-A", "project"}
		if how == "clone-all" {
			add = append(add, "-f")
		}
		for _, args := range [][]string{{"init", "-q"}, add, {"commit", "-qm", "all"}, {"clone", "-q", origin, filepath.Join(base, how)}} {
			if err := git(origin, args...); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(origin); err != nil {
			return err
		}
	}
	return nil
}
