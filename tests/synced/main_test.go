package synced

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
)

// No goroutine may be left, and the tests have a repair key of their own.
func TestMain(m *testing.M) { storetest.Main(m, nil) }

func open(t testing.TB, dir string, o *varve.Options) *varve.Store {
	t.Helper()
	st, err := varve.Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func put(t testing.TB, st *varve.Store, id, content string) {
	t.Helper()
	if _, err := st.Put(context.Background(), varve.Memory{ID: id, Content: content}); err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, st *varve.Store, id, want string) {
	t.Helper()
	if m, err := st.Get(context.Background(), id); err != nil || m.Content != want {
		t.Errorf("%s is %q, %v; want %q", id, m.Content, err, want)
	}
}

// sound fails the test unless verify finds nothing in a store, and nothing of it was set aside.
func sound(t testing.TB, st *varve.Store, dir string) {
	t.Helper()
	storetest.ExpectClean(t, st.Admin().Verify(context.Background(), varve.VerifyOptions{}), dir, true)
}

// git returns a function that runs git in a folder, as a user without settings.
func git(t testing.TB, dir string) func(args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git: apt-get install git")
	}
	return func(args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "pull.rebase=false"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
}

// pair makes a store with the given memories, under git, and a clone of it.
func pair(t *testing.T, contents map[string]string) (one, two string) {
	t.Helper()
	one, two = filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	st := open(t, one, nil)
	for id, content := range contents {
		put(t, st, id, content)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	g := git(t, one)
	g("init", "-q", "-b", "main")
	g("add", "-A")
	g("commit", "-qm", "first")
	g("clone", "-q", one, two)
	return one, two
}

// later makes a file's time differ from that of any version before, as the passing time does for users.
func later(t testing.TB, name string) {
	t.Helper()
	at := time.Now().Add(2 * time.Second)
	if err := os.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
}

// mend adopts what was changed by hand, and fails if anything was set aside.
func mend(t testing.TB, dir string) {
	t.Helper()
	ctx := context.Background()
	plan, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Apply(ctx); err != nil {
		t.Fatal(err)
	}
}
