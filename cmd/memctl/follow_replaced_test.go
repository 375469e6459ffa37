package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFollowReplaced: memctl remote follow does not continue for a store that is no longer at its path. It opens the
// store that is there now, which sends nothing until it has a place of its own, and prints that.
func TestFollowReplaced(t *testing.T) {
	t.Parallel()
	memctl, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "storage")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, memctl, append([]string{"--store", store}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
		return cmd
	}
	for _, args := range [][]string{{"put", "one", "--id", "a"},
		{"remote", "add", "file://" + filepath.ToSlash(filepath.Join(dir, "copy"))}} {
		if args[0] == "put" {
			if out, err := exec.Command(memctl, "init", store).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		if out, err := command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	follow := command("remote", "follow")
	told, err := follow.StderrPipe()
	if err == nil {
		err = follow.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(told); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "sending to file:") {
			if err := os.Rename(store, store+".old"); err != nil {
				t.Error(err)
			}
			if err := os.CopyFS(store, os.DirFS(store+".old")); err != nil {
				t.Error(err)
			}
		}
	}
	err = follow.Wait()
	if ctx.Err() != nil || err == nil {
		t.Errorf("remote follow continues: %v", err)
	}
	for _, want := range []string{"memctl now sends the store that is in its place", "memctl remote remove"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("not said: %q in %s", want, text.String())
		}
	}
}
