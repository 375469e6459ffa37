package repairs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/wal"
)

// beforeFeatures is the last commit whose programs know of no features.
const beforeFeatures = "bf55b51cb08f9d0b1006ca11298e79abc4cf2dd8"

// olderMemctl returns the path of memctl as it was before features existed, which it builds once into the user's cache.
func olderMemctl(t *testing.T) string {
	t.Helper()
	proofs.ManyProcesses(t, "it builds memctl of an older commit")
	if out, err := exec.Command("git", "cat-file", "-e", beforeFeatures+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("a shallow clone: its history does not reach back to commit %s: git fetch --unshallow (%v: %s)",
			beforeFeatures, err, out)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(cache, "varve-test", "memctl-"+beforeFeatures)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if _, err := os.Stat(name); err == nil {
		return name
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	archive, built := filepath.Join(dir, "older.tar"), filepath.Join(dir, "built")
	for _, c := range [][]string{
		{"git", "-C", fixture.ModuleRoot(), "archive", "--output", archive, beforeFeatures},
		{"tar", "-C", dir, "-xf", archive},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", c, err, out)
		}
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", built, "./cmd/memctl")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building memctl of %s: %v: %s", beforeFeatures, err, out)
	}
	// Another process may build it at the same time: the name is only ever that of a complete program.
	data, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "building-*")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o700), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		t.Fatal(errors.Join(err, os.Remove(f.Name())))
	}
	return name
}

// Programs of the commit before features, in their own processes, beside this one: both use one store as
// long as it has no feature; a process that sets a feature waits for them; from then on they are refused
// and change nothing.
func TestFeaturesBesideOlder(t *testing.T) {
	t.Parallel()
	memctl := olderMemctl(t)
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "storage")
	const newer = 12 // exit code
	run := func(args ...string) (code int, all string) {
		t.Helper()
		cmd := exec.Command(memctl, append([]string{"--store", dir}, args...)...)
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	works := func(args ...string) {
		t.Helper()
		if code, out := run(args...); code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, out)
		}
	}
	refused := func(args ...string) {
		t.Helper()
		// in the words of the older program
		if code, out := run(args...); code != newer || !strings.Contains(out, "a newer version") {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}
	write := func(id string) {
		t.Helper()
		st, err := varve.Open(ctx, dir, knowing(bothFeatures))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "by this program"}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}

	works("init")
	works("put", "by the older program", "--id", "old")
	before := fixture.Snapshot(t, dir)
	st, err := varve.Open(ctx, dir, knowing(bothFeatures))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	// In the checkpoint the first open records that the store has a config.json, where older programs write zeros.
	after := fixture.Snapshot(t, dir)
	delete(before, "checkpoint")
	delete(after, "checkpoint")
	if !maps.Equal(before, after) {
		t.Error("opening a store of the older program has changed it")
	}
	write("new")
	works("get", "new")
	works("put", "again", "--id", "old2")
	if b, err := os.ReadFile(filepath.Join(dir,
		"checkpoint")); err != nil || b[8] != 1 || b[4096+8] != 1 || len(bytes.Trim(b[144:160], "\x00")) != 0 {
		t.Errorf("a store without features has another checkpoint: %v", err)
	}

	// An older process has it open. Its side of the shared page was made by this program, or
	// by itself.
	for _, first := range []string{"older", "newer"} {
		o := knowing(bothFeatures)
		o.LockWait = 500 * time.Millisecond
		var st *varve.Store
		if first == "newer" {
			st = fixture.Open(t, dir, o)
		}
		server, end := startOlder(t, memctl, dir)
		if st == nil {
			st = fixture.Open(t, dir, o)
		}
		before, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
		if err != nil {
			t.Fatal(err)
		}
		err = storetest.Inner(st).Engine.Log().Raise(ctx, wal.FeatureTestWrite)
		if !errors.Is(err, varve.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(server.Process.Pid)) {
			t.Fatalf("%s first: raised beside the older process %d: %v", first, server.Process.Pid, err)
		}
		after, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s first: a raise that gave up has changed the checkpoint: %v", first, err)
		}
		works("put", "while this program waits", "--id", "old-"+first)
		end()
		if first == "older" {
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		mustRaise(t, st, wal.FeatureTestWrite)
		refused("put", "beside this program", "--id", "never")
		refused("list")
		if _, err := st.Put(ctx, varve.Memory{ID: "after", Content: "by this program"}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}

	before = fixture.Snapshot(t, dir)
	for _, args := range [][]string{
		{"put", "x", "--id", "never"}, {"get", "old"}, {"rm", "old"}, {"flush"}, {"status"}, {"verify"},
		{"repair", "--apply"}, {"rebuild-index"},
		{"migrate", "--to", filepath.Join(t.TempDir(), "to"), "--switch"}, {"backup", filepath.Join(t.TempDir(), "backup")},
	} {
		refused(args...)
	}
	after = fixture.Snapshot(t, dir)
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s was changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files and folders, were %d", len(after), len(before))
	}

	// Also by one slot only, and by the backup.
	slots, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		b := bytes.Clone(slots)
		clear(b[i*4096 : (i+1)*4096])
		if err := os.WriteFile(filepath.Join(dir, "checkpoint"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		refused("put", "x", "--id", "never")
	}
	write("last")
	backup := filepath.Join(t.TempDir(), "backup")
	last := fixture.Open(t, dir, knowing(bothFeatures))
	if n, err := last.Count(ctx); err != nil || n != 7 {
		t.Errorf("%d memories, %v", n, err)
	}
	if _, err := last.Backup(ctx, backup, varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	refused("restore", backup, filepath.Join(t.TempDir(), "restored"))
}

// startOlder starts the older memctl as a server of the store; end closes its input and waits.
func startOlder(t *testing.T, memctl, dir string) (cmd *exec.Cmd, end func()) {
	t.Helper()
	cmd = exec.Command(memctl, "--store", dir, "mcp")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	fmt.Fprintln(in,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	answers := bufio.NewReader(out)
	if line, err := answers.ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_graph","arguments":{}}}`)
	if line, err := answers.ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	return cmd, func() {
		t.Helper()
		_ = in.Close()
		_, _ = io.Copy(io.Discard, answers)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("the older memctl mcp: %v", err)
		}
	}
}

// An older program beside writers: as long as it has the store open, versions are written without a
// writer; then the features are set, and it is refused.
func TestWritersBesideOlder(t *testing.T) {
	t.Parallel()
	memctl := olderMemctl(t)
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "storage")
	if out, err := exec.Command(memctl, "--store", dir, "init").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, end := startOlder(t, memctl, dir)
	clock := fixture.ClockAt(time.Now())
	o := knowing(0)
	o.Clock, o.Writer, o.NoBackground = clock.Now, &varve.Writer{Program: "test", Agent: "one"}, true
	st := fixture.Open(t, dir, o)
	put := func(id string) {
		t.Helper()
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: "x"})
		fixture.Must(t, err)
	}
	put("a")
	if got := fixture.WritersOf(t, st, "a"); len(got) != 1 || got[0] != varve.UnknownWriter {
		t.Errorf("beside the older program: %v", got)
	}
	if f := storetest.Inner(st).Engine.Log().Features(); f != 0 {
		t.Errorf("raised beside the older program: %s", f)
	}
	out, err := exec.Command(memctl, "--store", dir, "get", "a").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	end()
	clock.Add(2 * time.Minute)
	put("b")
	if got := fixture.WritersOf(t, st, "b"); len(got) != 1 || got[0] != "one" {
		t.Errorf("without it: %v", got)
	}
	before := fixture.Snapshot(t, dir)
	for _, args := range [][]string{{"get", "a"}, {"put", "x", "--id", "never"}, {"repair", "--apply"}} {
		cmd := exec.Command(memctl, append([]string{"--store", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 12 {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	if !maps.Equal(fixture.Snapshot(t, dir), before) {
		t.Error("the older program has changed the store")
	}
}
