package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/tests/forgery"
	"github.com/varve-db/varve/working"
)

// bombRSS is what a command may take, whatever the entries of a log inflate to: a document of 16 MiB
// is in memory a few times at once.
const bombRSS = 384 << 20

// workRSS is what a command may take for a scope of working memory that has as much as a store reads.
const workRSS = 1 << 30

// bombStore is a store with a correctly signed log of a few hundred KB.
func bombStore(t *testing.T, bombs ...forgery.Forgery) *forged {
	f := newForged(t)
	for _, b := range bombs {
		if err := b.Make(f.dir); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// measured runs a command as a process, and returns its exit code, what it says on stderr, and the most memory
// that it took.
func (f *forged) measured(args ...string) (code int, errOut string, rss int64) {
	f.t.Helper()
	path, err := exec.LookPath("memctl")
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"--store", f.dir}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	// Not the Maxrss of its end: that counts what this process had when it was started, too.
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p := &mcpProcess{t: f.t, cmd: cmd}
	for every := time.NewTicker(time.Millisecond); ; {
		select {
		case <-every.C:
			if n, err := p.peakNow(); err == nil {
				rss = n
			}
		case <-ended:
			return cmd.ProcessState.ExitCode(), stderr.String(), rss
		}
	}
}

// size is what the files of the store take.
func (f *forged) size() (n int64) {
	err := filepath.WalkDir(f.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, ierr := d.Info()
			if err = ierr; err == nil {
				n += info.Size()
			}
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// TestBombs: a log of 100 KB whose documents take 272 MiB costs no command more memory than a few of
// them, and no file is made of them until the user asks for it. Entries that inflate to more than any
// log has (255 MiB) cost nothing at all. Each command took from 900 MiB to 7 GiB.
func TestBombs(t *testing.T) {
	proofs.ManyProcesses(t, "every step is a process")
	t.Parallel()
	huge := bombStore(t, forgery.Bombs(4, 255<<20))
	for _, args := range [][]string{{"list", "--json"}, {"search", "word"}, {"put", "new", "--id", "new"}, {"get", "x0"}, {"history", "x0"}, {"verify"}} {
		if code, errOut, rss := huge.measured(args...); rss > 128<<20 || code == cli.CodeInternal {
			t.Errorf("%q: exit %d, %d MiB: %s", args, code, rss>>20, errOut)
		}
	}
	if n := huge.size(); n > 8<<20 {
		t.Errorf("the store takes %d MiB", n>>20)
	}

	f := bombStore(t, forgery.Bombs(17, 16<<20))
	for _, args := range [][]string{
		{"put", "new", "--id", "new"}, {"get", "x0"}, {"list", "--json"}, {"search", "word", "--limit", "20"}, {"history", "x1"}, {"verify"},
		{"watch", "--since", "0", "--limit", "3"}, {"export"}, {"__complete", "get", "x"}, {"repair", "--apply"},
	} {
		code, errOut, rss := f.measured(args...)
		if code != 0 || rss > bombRSS {
			t.Errorf("%q: exit %d, %d MiB: %s", args, code, rss>>20, errOut)
		}
		t.Logf("%q: %d MiB", args, rss>>20)
	}
	code, errOut, rss := f.measured("flush")
	if code != cli.CodeRefused || rss > bombRSS || !strings.Contains(errOut, "flush --inflate") {
		t.Errorf("flush: exit %d, %d MiB: %s", code, rss>>20, errOut)
	}
	if n := f.size(); n > 64<<20 {
		t.Errorf("the store takes %d MiB", n>>20)
	}
	// Deleting is one remedy, and the other is to ask for it.
	for _, args := range [][]string{{"rm", "x0"}, {"rm", "x2"}, {"flush"}, {"get", "x1"}} {
		if code, errOut, _ := f.measured(args...); code != 0 {
			t.Errorf("%q: exit %d: %s", args, code, errOut)
		}
	}
}

// TestRescueBesideBombs: when the log is removed under an open store, documents that become no files do not take the
// others with them.
func TestRescueBesideBombs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := bombStore(t, forgery.Bombs(17, 16<<20))
	st, err := varve.Open(ctx, f.dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "new", Content: "of the user"}); err != nil {
		t.Fatal(err)
	}
	unfiled := closedUnfiled(t, st, f.dir)
	if unfiled.Count != 17 || len(unfiled.Documents) != 17 || slices.Contains(unfiled.Documents, `memory "new"`) {
		t.Error(unfiled)
	}
	if st, err = varve.Open(ctx, f.dir, &varve.Options{NoBackground: true}); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if m, err := st.Get(ctx, "new"); err != nil || m.Content != "of the user" {
		t.Error(m.Content, err)
	}
}

// closedUnfiled removes log and index below a store, closes it, and returns what Close says is in no file.
func closedUnfiled(t *testing.T, st *varve.Store, dir string) *varve.UnfiledError {
	t.Helper()
	for _, name := range []string{"wal", "checkpoint", "memory_index.json", "memory_index.delta.json"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	err := st.Close()
	var unfiled *varve.UnfiledError
	if !errors.Is(err, varve.ErrReplaced) || !errors.As(err, &unfiled) {
		t.Fatal("Close has not told what is in no file:", err)
	}
	return unfiled
}

// TestRescueBesideWorkBombs: the same of working memory. A scope of which no file is made was dropped with a line in the
// log, and the other ones with it.
func TestRescueBesideWorkBombs(t *testing.T) {
	proofs.Seldom(t, "20 s of one processor")
	t.Parallel()
	ctx := t.Context()
	f := bombStore(t, forgery.WorkBombs(80, 15<<20, false))
	st, err := varve.Open(ctx, f.dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	w, err := st.Working().Open(ctx, working.Scope{Session: "user"}, nil)
	if err == nil {
		err = w.Set(ctx, "step", "one")
	}
	if err != nil {
		t.Fatal(err)
	}
	unfiled := closedUnfiled(t, st, f.dir)
	if unfiled.Count != 1 || !strings.HasPrefix(unfiled.Documents[0], "working memory ") || strings.Contains(unfiled.Documents[0], "user") {
		t.Error(unfiled)
	}
	if st, err = varve.Open(ctx, f.dir, &varve.Options{NoBackground: true}); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if w, err = st.Working().Open(ctx, working.Scope{Session: "user"}, nil); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := w.Get(ctx, "step"); err != nil || !ok || v != "one" {
		t.Error(v, ok, err)
	}
}

// TestInflate: the files are written when the user asks for it, in the same memory.
func TestInflate(t *testing.T) {
	proofs.ManyProcesses(t, "every step is a process")
	t.Parallel()
	f := bombStore(t, forgery.Bombs(17, 16<<20))
	if code, errOut, rss := f.measured("flush", "--inflate"); code != 0 || rss > bombRSS {
		t.Errorf("exit %d, %d MiB: %s", code, rss>>20, errOut)
	}
	if n := f.size(); n < 17*16<<20 {
		t.Errorf("the store takes %d MiB", n>>20)
	}
	if code, errOut, _ := f.measured("verify"); code != 0 {
		t.Errorf("verify: exit %d: %s", code, errOut)
	}
}

// TestWorkBombs: the same in entries of working memory. A scope has at most what a store lets it have, and
// the entries from which it is made are in memory one after another. A command took 2 GiB.
func TestWorkBombs(t *testing.T) {
	proofs.ManyProcesses(t, "every step is a process")
	for _, names := range []bool{false, true} {
		t.Run(fmt.Sprint("names ", names), func(t *testing.T) {
			if names {
				proofs.Seldom(t, "20 s of one processor")
			}
			t.Parallel()
			f := bombStore(t, forgery.WorkBombs(80, 15<<20, names))
			scope := []string{"--scope", "session:s"}
			for _, args := range [][]string{
				append([]string{"working", "list"}, scope...), append([]string{"working", "set", "new", "x"}, scope...), {"list"}, {"put", "new", "--id", "new"},
				{"verify"}, {"backup", f.dir + ".backup"}, {"export"}, {"watch", "--since", "0", "--limit", "3"}, {"repair", "--apply"},
			} {
				code, errOut, rss := f.measured(args...)
				if code == cli.CodeInternal || rss > workRSS {
					t.Errorf("%q: exit %d, %d MiB: %s", args, code, rss>>20, errOut)
				}
				t.Logf("%q: exit %d, %d MiB: %s", args, code, rss>>20, errOut)
			}
			code, errOut, rss := f.measured("flush")
			if rss > workRSS {
				t.Errorf("flush: exit %d, %d MiB: %s", code, rss>>20, errOut)
			}
			t.Logf("flush: exit %d, %d MiB: %s", code, rss>>20, errOut)
			if n := f.size(); n > 64<<20 {
				t.Errorf("the store takes %d MiB", n>>20)
			}
		})
	}
}

// TestVersionBombs: the same in the versions of one memory.
func TestVersionBombs(t *testing.T) {
	proofs.OneGoroutine(t)
	proofs.Seldom(t, "20 s of one processor")
	t.Parallel()
	f := bombStore(t, forgery.VersionBombs(30, 16<<20))
	for _, args := range [][]string{
		{"history", "x"}, {"history", "x", "--json"}, {"get", "x"}, {"watch", "--since", "0", "--limit", "30"}, {"verify"}, {"put", "new", "--id", "x"},
		{"flush"}, {"rm", "x"}, {"flush"}, {"purge", "x", "--yes"},
	} {
		code, errOut, rss := f.measured(args...)
		if code == cli.CodeInternal || rss > bombRSS {
			t.Errorf("%q: exit %d, %d MiB: %s", args, code, rss>>20, errOut)
		}
		t.Logf("%q: exit %d, %d MiB: %s", args, code, rss>>20, errOut)
	}
}
