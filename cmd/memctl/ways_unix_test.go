//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// TestWaysOfOthers (FAILURES 171): a store that another user has put where one is found is used in no such
// way; one whose path was given is opened as it is.
func TestWaysOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make a store of another user; TestForeign in internal/locate has the rule")
		return
	}
	mine := newCLI(t)
	mine.ok("put", "a secret", "--id", "a")
	mine.ok("backup", filepath.Join(mine.dir, "backup"))
	for _, w := range ways {
		dir := project(t, mine)
		at := filepath.Join(dir, w.at)
		err := os.MkdirAll(filepath.Dir(at), 0o700)
		if err == nil {
			err = os.CopyFS(at, os.DirFS(mine.store()))
		}
		if err == nil {
			err = filepath.WalkDir(at, func(path string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Lchown(path, neighbour, neighbour))
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		before := names(t, at)
		code, out := w.run(t, dir)
		switch {
		case w.used != (code == cli.CodeOK) && w.name != "completion":
			t.Errorf("%s: exit code %d: %s", w.name, code, out)
		case !w.used && (strings.Contains(out, "secret") || w.name != "completion" && !strings.Contains(out, "belongs to user 65533")):
			t.Errorf("%s: %s", w.name, out)
		}
		if after := names(t, at); len(after) != len(before) {
			t.Errorf("%s: the store has %v, was %v", w.name, after, before)
		}
	}
}
