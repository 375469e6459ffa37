package varve

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
)

// The note is git's to leave alone: cleaning up would make the old place a second
// store, committing it would close every clone.
func TestMigrateNoteIsIgnoredByGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("-short: no git: install it")
	}
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	movable(t, dir)
	git := func(args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-qm", "x")
	if _, err := Migrate(context.Background(), dir, to, &MigrateOptions{Switch: true}); err != nil {
		t.Fatal(err)
	}
	if out := git("status", "--porcelain"); out != "" {
		t.Errorf("git would commit %s", out)
	}
	git("clean", "-qfd")
	if _, err := Open(context.Background(), dir, nil); !errors.Is(err, ErrMoved) {
		t.Errorf("after git clean there are two stores: %v", err)
	}
}
