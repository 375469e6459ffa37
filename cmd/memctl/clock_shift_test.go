package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

const year = 365 * 24 * time.Hour

// shiftable runs memctl commands on one store, with a clock that is ahead by as much as a command is given.
type shiftable struct {
	t      *testing.T
	dir    string
	binary bool // a process whose machine has the wrong clock; else a clock that is passed to the program
}

// shifted calls f with both kinds: the machine's clock is wrong for the program as it ships, and a host passes a
// wrong clock to it. The protection must not depend on who owns the clock.
func shifted(t *testing.T, f func(t *testing.T, c *shiftable)) {
	for _, binary := range []bool{true, false} {
		t.Run(map[bool]string{true: "machine", false: "passed"}[binary], func(t *testing.T) {
			t.Parallel()
			c := &shiftable{t, t.TempDir(), binary}
			c.at(0, "init", c.store())
			f(t, c)
		})
	}
}

func (c *shiftable) store() string { return filepath.Join(c.dir, "storage") }

// try runs a command by a clock that is ahead, and returns its exit code, stdout and stderr.
func (c *shiftable) try(ahead time.Duration, args ...string) (int, string, string) {
	c.t.Helper()
	var out, errOut bytes.Buffer
	if !c.binary {
		env := cli.Environment{
			Getenv: func(string) string { return "" },
			Getwd:  func() (string, error) { return c.dir, nil },
			Clock:  func() time.Time { return time.Now().Add(ahead) },
		}
		code := run(c.t.Context(), args, strings.NewReader(""), &out, &errOut, env)
		return code, out.String(), errOut.String()
	}
	path, err := exec.LookPath("memctl")
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &out, &errOut
	startShifted(c.t, cmd, ahead)
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

func (c *shiftable) at(ahead time.Duration, args ...string) string {
	c.t.Helper()
	code, out, errOut := c.try(ahead, args...)
	if code != cli.CodeOK {
		c.t.Fatalf("memctl %.200q, clock ahead by %v: exit code %d: %s%s", args, ahead, code, errOut, out)
	}
	return out
}

// The clock of a command is really ahead, and that of the next one is not.
func TestClockShifted(t *testing.T) {
	t.Parallel()
	shifted(t, func(t *testing.T, c *shiftable) {
		for _, ahead := range []time.Duration{0, 10 * year} {
			var d struct {
				Memories []struct {
					Memory struct {
						Created time.Time `json:"created_at"`
					}
				}
			}
			id := fmt.Sprint("m", ahead/year)
			c.at(ahead, "put", "x", "--id", id)
			if err := json.Unmarshal([]byte(c.at(0, "get", id, "--json")), &d); err != nil || len(d.Memories) != 1 {
				t.Fatal(d, err)
			}
			created := d.Memories[0].Memory.Created
			if off := created.Sub(time.Now().Add(ahead)).Abs(); off > time.Minute {
				t.Errorf("ahead by %v: put at %v, off by %v", ahead, created, off)
			}
		}
	})
}

// What is in working memory has its lifetime by the machine's uptime: one command whose clock is ten years ahead
// takes nothing of it, whichever command of a boot that is.
func TestClockAheadWorking(t *testing.T) {
	t.Parallel()
	shifted(t, func(t *testing.T, c *shiftable) {
		scope := []string{"--scope", "session:s"}
		with := func(args ...string) []string { return append(args, scope...) }
		c.at(0, with("working", "set", "plan", "to be kept", "--ttl", "24h")...)
		for _, args := range [][]string{{"working", "set", "other", "x"}, {"working", "get", "other"}, {"flush"}} {
			if args[0] == "working" {
				args = with(args...)
			}
			c.at(10*year, args...)
		}
		c.at(10*year, with("working", "set", "late", "x", "--ttl", "24h")...)
		for _, key := range []string{"plan", "late"} {
			if got := c.at(0, with("working", "get", key)...); !strings.Contains(got, "kept") && !strings.Contains(got, "x") {
				t.Errorf("%s is %q", key, got)
			}
		}
	})
}

// A memory whose time is over by a clock that is ahead is deleted only after an hour of the machine's uptime.
func TestClockAheadExpiry(t *testing.T) {
	t.Parallel()
	shifted(t, func(t *testing.T, c *shiftable) {
		c.at(0, "put", "to be kept", "--id", "a", "--ttl", "30d")
		c.at(0, "flush")
		for i := range 4 {
			c.at(year+time.Duration(i)*2*time.Hour, "put", "x", "--id", fmt.Sprint("b", i))
			c.at(year+time.Duration(i)*2*time.Hour, "flush")
		}
		if got := c.at(0, "get", "a"); !strings.Contains(got, "to be kept") {
			t.Errorf("it is %q", got)
		}
	})
}

// history_days removes nothing because of one command whose clock is ahead.
func TestClockAheadHistory(t *testing.T) {
	t.Parallel()
	shifted(t, func(t *testing.T, c *shiftable) {
		dir := filepath.Join(c.dir, "old")
		makeHistory(t, dir)
		history := func() int64 {
			var d struct {
				Bytes int64 `json:"history_bytes"`
			}
			if err := json.Unmarshal([]byte(c.at(0, "status", "--json", "--store", dir)), &d); err != nil {
				t.Fatal(err)
			}
			return d.Bytes
		}
		c.at(0, "config", "set", "history_days", "90", "--store", dir)
		before := history()
		if before == 0 {
			t.Fatal("there is no history")
		}
		for _, ahead := range []time.Duration{91 * 24 * time.Hour, 92 * 24 * time.Hour} {
			c.at(ahead, "put", "x", "--store", dir)
			c.at(ahead, "flush", "--store", dir)
		}
		if after := history(); after < before {
			t.Errorf("%d bytes of history are left of %d", after, before)
		}
	})
}

// makeHistory makes a store whose archive holds some segments.
func makeHistory(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	o := &varve.Options{SegmentSize: 64 << 10, NoBackground: true}
	st, err := varve.Open(ctx, dir, storetest.In(o, storetest.Environment{System: vfs.System{SpillBytes: 64 << 10}}))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		text := make([]byte, 1500)
		for j := range text {
			text[j] = 'a' + byte(random.IntN(26))
		}
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i%100), Content: string(text)}); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 {
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
