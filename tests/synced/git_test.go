package synced

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// A pull brings files that are newer than the cache, the index and the backlog of an open store. The
// next flush overwrites none of them.
func TestFailures113(t *testing.T) {
	ctx := context.Background()
	one, two := pair(t, map[string]string{"a": "first", "b": "first", "c": "first"})

	away := open(t, two, nil)
	put(t, away, "a", "of the other clone")
	put(t, away, "new", "of the other clone")
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	there := git(t, two)
	there("add", "-A")
	there("commit", "-qm", "second")

	st := open(t, one, &varve.Options{NoBackground: true})
	for _, id := range []string{"a", "b", "c"} {
		expect(t, st, id, "first") // in the cache
	}
	put(t, st, "b", "not in a file yet")
	git(t, one)("pull", "-q", two, "main")
	later(t, filepath.Join(one, "memories", "a.json"))
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(one, "memories", "a.json"))
	if err != nil || !bytes.Contains(b, []byte("of the other clone")) {
		t.Errorf("the flush has written over what the pull brought: %s, %v", b, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	mend(t, one)
	st = open(t, one, nil)
	expect(t, st, "a", "of the other clone")
	expect(t, st, "b", "not in a file yet")
	expect(t, st, "c", "first")
	expect(t, st, "new", "of the other clone")
	sound(t, st, one)
}

// The files of a store that git tracks have nothing that is valid on one machine only: no folder, no
// host name, no process, no inode number. So nothing in a clone must be corrected, and two clones that
// did nothing have no difference.
func TestFailures114(t *testing.T) {
	one, two := pair(t, map[string]string{"a": "text", "b": "more text"})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(one)
	if err != nil {
		t.Fatal(err)
	}
	local := map[string]string{"the folder": one, "the folder's real name": real, "the process": fmt.Sprintf("%q:%d", "pid", os.Getpid())}
	if len(host) > 3 { // a shorter one is in any text
		local["the host"] = host
	}
	for _, name := range strings.Fields(git(t, one)("ls-files")) {
		b, err := os.ReadFile(filepath.Join(one, name))
		if err != nil {
			t.Fatal(err)
		}
		for what, s := range local {
			if bytes.Contains(b, []byte(s)) {
				t.Errorf("%s has %s: %s", name, what, s)
			}
		}
	}
	st := open(t, two, nil)
	expect(t, st, "a", "text")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if out := git(t, two)("status", "--porcelain"); out != "" {
		t.Errorf("opening a clone changes what git has: %s", out)
	}
}

// Two clones that pull from each other, again and again, set nothing aside: neither treats the files,
// the log positions or the UUID of the other as damage.
func TestFailures115(t *testing.T) {
	ctx := context.Background()
	one, two := pair(t, map[string]string{"a": "first"})
	for round := range 4 {
		for i, dir := range []string{one, two} {
			other := []string{two, one}[i]
			g := git(t, dir)
			g("pull", "-q", other, "main")
			mend(t, dir) // as where no process watches
			st := open(t, dir, nil)
			put(t, st, fmt.Sprint("of-", i, "-", round), "sound")
			put(t, st, "a", fmt.Sprint("changed by ", i, " in round ", round))
			sound(t, st, dir)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			g("add", "-A")
			g("commit", "-qm", "x")
		}
	}
	for i, dir := range []string{one, two} {
		if i == 0 {
			git(t, one)("pull", "-q", two, "main")
			mend(t, dir) // as where no process watches
		}
		st := open(t, dir, nil)
		expect(t, st, "a", "changed by 1 in round 3")
		if n, err := st.Count(ctx); err != nil || n != 9 {
			t.Errorf("%d memories, %v; want 9", n, err)
		}
		sound(t, st, dir)
	}
}
