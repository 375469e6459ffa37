package migrate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
)

// git must ignore the note: if a cleanup removed it, the old place would become a second store; if it
// were committed, no clone could be opened.
func TestMigrateNoteIsIgnoredByGit(t *testing.T) {
	for what, older := range map[string]bool{"new": false, "of an older program": true} {
		t.Run(what, func(t *testing.T) { cleanedByGit(t, older) })
	}
}

func cleanedByGit(t *testing.T, older bool) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git: install it")
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
	if older {
		storetest.Rewrite(t, filepath.Join(dir, ".gitignore"), func(b []byte) []byte {
			return []byte("mine\nwal/\ntmp/\nbackups/\nvector_index/\ncheckpoint\nmemory_index*.json")
		})
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-qm", "x")
	if _, err := varve.Migrate(context.Background(), dir, to, &varve.MigrateOptions{Switch: true}); err != nil {
		t.Fatal(err)
	}
	want := ""
	if older {
		want = " M .gitignore\n"
		if b, err := os.ReadFile(filepath.Join(to, ".gitignore")); err != nil || !strings.HasPrefix(string(b), "mine\n") || !strings.HasSuffix(string(b), "index*.json\nmoved.json*\nmigrate.json*\nmigrate.lock\n") {
			t.Errorf("%q, %v", b, err)
		}
	}
	if out := git("status", "--porcelain"); out != want {
		t.Errorf("git would commit %s", out)
	}
	git("checkout", "-q", ".")
	git("clean", "-qfd")
	if _, err := varve.Open(context.Background(), dir, nil); !errors.Is(err, varve.ErrMoved) {
		t.Errorf("after git clean there are two stores: %v", err)
	}
	if r, err := varve.Migrate(context.Background(), dir, to, &varve.MigrateOptions{RemoveSource: true}); err != nil || !r.Removed {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := varve.Open(context.Background(), dir, nil); !errors.Is(err, varve.ErrMoved) {
		t.Errorf("emptied: %v", err)
	}
}
