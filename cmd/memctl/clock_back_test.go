package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// memctlAt is memctl with a clock that says another time when it starts, its first argument.
func memctlAt() {
	at, err := time.Parse(time.RFC3339Nano, os.Args[1])
	if err != nil {
		panic(err)
	}
	began := time.Now()
	ctx, e := cli.Listen(cli.System())
	e.Clock = func() time.Time { return at.Add(time.Since(began)) }
	os.Exit(run(ctx, os.Args[2:], os.Stdin, os.Stdout, os.Stderr, e))
}

// atTimes runs memctl at times of a clock, in this process or each in its own.
type atTimes struct {
	t         *testing.T
	dir       string
	processes bool
}

func (c *atTimes) path(name string) string { return filepath.Join(c.dir, name) }

// run runs memctl on the store of the folder, unless the arguments name another.
func (c *atTimes) run(at time.Time, args ...string) (code int, out, errOut string) {
	c.t.Helper()
	if !slices.Contains(args, "--store") && args[0] != "init" && args[0] != "restore" {
		args = append(args, "--store", c.path("storage"))
	}
	var o, e bytes.Buffer
	if !c.processes {
		code = run(c.t.Context(), args, strings.NewReader(""), &o, &e, cli.Environment{
			Getenv: func(string) string { return "" }, Getwd: func() (string, error) { return c.dir, nil },
			Clock: func() time.Time { return at },
		})
		return code, o.String(), e.String()
	}
	cmd := exec.Command("memctl-at", append([]string{at.Format(time.RFC3339Nano)}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &o, &e
	cmd.Env = append(os.Environ(), "TZ=UTC", cli.StoreVariable+"=")
	if exit := (*exec.ExitError)(nil); errors.As(cmd.Run(), &exit) {
		code = exit.ExitCode()
	}
	return code, o.String(), e.String()
}

func (c *atTimes) ok(at time.Time, args ...string) string {
	c.t.Helper()
	code, out, errOut := c.run(at, args...)
	if code != 0 {
		c.t.Fatalf("memctl %q: exit code %d: %s%s", args, code, errOut, out)
	}
	return out
}

// features are those of the store of the folder.
func (c *atTimes) features() wal.Features {
	c.t.Helper()
	point, err := wal.ReadCheckpoint(vfs.OS(), c.path("storage"))
	if err != nil {
		c.t.Fatal(err)
	}
	return point.Features
}

// near reports whether a time that memctl printed is one at which it ran: in a process of its own its
// clock has gone on.
func near(t *testing.T, text string, at time.Time) bool {
	t.Helper()
	got, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && !got.Before(at) && got.Before(at.Add(30*time.Second))
}

// 165: a put with the clock ten years ahead, and then ten at right times. Each is shown with its own
// time, can be restored to, and is found by its time: also when the log has let go of them, and in
// the restored store.
func TestClockBack(t *testing.T) {
	t.Run("here", func(t *testing.T) { t.Parallel(); clockBack(t, false) })
	t.Run("processes", func(t *testing.T) {
		proofs.ManyProcesses(t, "every command is a process")
		t.Parallel()
		clockBack(t, true)
	})
}

func clockBack(t *testing.T, processes bool) {
	c := &atTimes{t, t.TempDir(), processes}
	right := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ahead, minute := right.AddDate(10, 0, 0), func(i int) time.Time { return right.Add(time.Duration(i) * time.Minute) }
	c.ok(minute(-10), "init", c.path("storage"))
	c.ok(minute(-9), "put", "before", "--id", "before")
	c.ok(minute(-8), "backup", c.path("base"))
	c.ok(ahead, "put", "ahead", "--id", "ahead")
	for i := range 10 {
		c.ok(minute(i), "put", fmt.Sprint("content ", i), "--id", "m")
		c.ok(minute(i), "put", fmt.Sprint("content ", i), "--id", fmt.Sprint("m", i))
	}
	now := minute(10)

	// versions are the times of m's versions, as history has them.
	versions := func(store string) (times []string) {
		var h struct{ Versions []struct{ Time string } }
		if err := json.Unmarshal([]byte(c.ok(now, "history", "m", "--json", "--store", c.path(store))), &h); err != nil {
			t.Fatal(err)
		}
		for _, v := range h.Versions {
			times = append(times, v.Time)
		}
		return times
	}
	times := versions("storage")
	for i, at := range times {
		if !near(t, at, minute(i)) {
			t.Errorf("version %d was committed at %s, and history says %s", i, minute(i), at)
		}
	}
	if len(times) != 10 {
		t.Fatalf("%d versions", len(times))
	}
	for i, line := range strings.Split(strings.TrimSpace(c.ok(now, "history", "m")), "\n") {
		if fields := strings.Split(line, "\t"); len(fields) < 2 || !near(t, fields[1], minute(i)) {
			t.Errorf("history: %q, want %s", line, minute(i))
		}
	}

	// The memory itself.
	var m struct{ CreatedAt, UpdatedAt string }
	doc := c.ok(now, "get", "m")
	doc = strings.NewReplacer(`"created_at"`, `"CreatedAt"`, `"updated_at"`, `"UpdatedAt"`).Replace(doc)
	if err := json.Unmarshal([]byte(doc), &m); err != nil || !near(t, m.CreatedAt, minute(0)) ||
		!near(t, m.UpdatedAt, minute(9)) {
		t.Errorf("get: %+v, %v", m, err)
	}

	// list --since goes by what the memories say.
	if got := strings.Fields(c.ok(now, "list", "--updated-since", minute(7).Format(time.RFC3339), "--output",
		"id")); fmt.Sprint(got) != "[ahead m m7 m8 m9]" {
		t.Errorf("list --updated-since: %q", got)
	}
	if got := strings.Fields(c.ok(now, "list", "--since", minute(7).Format(time.RFC3339), "--until",
		now.Format(time.RFC3339), "--output", "id")); fmt.Sprint(got) != "[m m7 m8 m9]" {
		t.Errorf("list --since --until: %q", got)
	}

	// watch --since begins at the first change at which the clock said that time or a later one: the one that was
	// ahead, and what follows it has its own times.
	for since, want := range map[time.Time]int{minute(-20): 22, minute(-5): 21, minute(4).Add(30 * time.Second): 21,
		ahead: 21, ahead.Add(time.Hour): 0} {
		args := []string{"watch", "--json", "--since", since.Format(time.RFC3339)}
		if want == 0 {
			continue // it would wait for the first
		}
		lines := strings.Split(strings.TrimSpace(c.ok(now, append(args, "--limit", fmt.Sprint(want))...)), "\n")
		for i, line := range lines {
			var ch struct{ ID, Time string }
			if err := json.Unmarshal([]byte(line), &ch); err != nil {
				t.Fatal(err)
			}
			n := i + 21 - len(lines)
			id, at := "before", minute(-9)
			switch {
			case n == 0:
				id, at = "ahead", ahead
			case n > 0:
				at = minute((n - 1) / 2)
				if id = "m"; n%2 == 0 {
					id = fmt.Sprint("m", (n-1)/2)
				}
			}
			if ch.ID != id || !near(t, ch.Time, at) {
				t.Errorf("since %s, change %d is of %q at %s, want %q at %s", since, i, ch.ID, ch.Time, id, at)
			}
		}
		if len(lines) != want {
			t.Errorf("since %s: %d changes, want %d", since, len(lines), want)
		}
	}

	// restore --at a moment between two of them ends there, by an older backup and the store's log, and by a backup of
	// now; the one that was ahead is before them, so it is in each.
	c.ok(now, "backup", c.path("whole"))
	for _, backup := range []string{"base", "whole"} {
		for i := range 10 {
			to, at := fmt.Sprintf("%s-%d", backup, i), minute(i).Add(30*time.Second)
			args := []string{"restore", c.path(backup), c.path(to), "--at", at.Format(time.RFC3339), "--json"}
			if backup == "base" {
				args = append(args, "--log", c.path("storage"))
			} else if i < 9 {
				continue // a backup is whole from its end on
			}
			var r struct {
				Restored struct {
					Memories int
					Time     string
				}
			}
			if err := json.Unmarshal([]byte(c.ok(now, args...)), &r); err != nil || r.Restored.Memories != 4+i ||
				!near(t, r.Restored.Time, minute(i)) {
				t.Errorf("%s restored to %s: %+v, %v; want %d memories", backup, at, r, err, 4+i)
			}
			if got := c.ok(now, "get", "m", "--content", "--store", c.path(to)); strings.TrimSpace(got) != fmt.Sprint("content ",
				i) {
				t.Errorf("%s restored to %s: %q", backup, at, got)
			}
		}
	}
	// Before the one that was ahead it is not there.
	c.ok(now, "restore", c.path("base"), c.path("early"), "--at", minute(-5).Format(time.RFC3339), "--log",
		c.path("storage"))
	if got := strings.Fields(c.ok(now, "list", "--output", "id", "--store",
		c.path("early"))); fmt.Sprint(got) != "[before]" {
		t.Errorf("restored to before the clock was ahead: %q", got)
	}
	// A restored store has no log of them, only files, whose times are those of the frames.
	if got := versions("base-9"); len(got) != 1 || !near(t, got[0], minute(9)) {
		t.Errorf("history in the restored store: %q", got)
	}

	// When the clock has come to where it was ahead, its own times go on.
	c.ok(ahead.Add(time.Hour), "put", "later", "--id", "m")
	if got := versions("storage"); len(got) != 11 || !near(t, got[10], ahead.Add(time.Hour)) ||
		!near(t, got[9], minute(9)) {
		t.Errorf("history: %q", got)
	}
	if code, out, errOut := c.run(now, "verify"); code != 0 {
		t.Errorf("verify: %d %s%s", code, out, errOut)
	}
	if f := c.features(); f&wal.FeatureFields == 0 {
		t.Errorf("features %s", f)
	}
}

// A store whose clock was right gets the features of writers, of the views and of the terms, and no other.
func TestClockRight(t *testing.T) {
	t.Parallel()
	c := &atTimes{t, t.TempDir(), false}
	right := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	c.ok(right, "init", c.path("storage"))
	for i := range 3 {
		c.ok(right.Add(-time.Duration(i)*300*time.Millisecond), "put", fmt.Sprint("content ", i), "--id", "m")
	}
	if f := c.features(); f != wal.FeatureViews|wal.FeatureWriters|wal.FeatureTerms|wal.FeatureFields {
		t.Errorf("features %s", f)
	}
}
