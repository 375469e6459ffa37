package varve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/working"
)

// The golden stores of working memory, testdata/golden/working, are made with
//
//	VARVE_GOLDEN=working go test . -run '^TestMakeGoldenWorking$'
//
// like those of goldenRoot: once, and never again.
var goldenWorking = filepath.Join(fixture.GoldenRoot, "working")

// goldenScopes returns the contents of all scopes of a store, by their keys.
func goldenScopes(t *testing.T, dir string, readOnly bool) map[string]string {
	t.Helper()
	ctx := context.Background()
	st, err := varve.Open(ctx, dir, &varve.Options{ReadOnly: readOnly, NoBackground: true})
	fixture.Must(t, err)
	defer st.Close()
	type state struct {
		Values  map[string]any
		Expires []string
		Task    *working.Task
		Notes   []working.Note
		Of      string
	}
	shown := func(s *working.Snapshot) state {
		out := state{Values: s.Values, Task: s.Task, Notes: s.Notes, Of: s.Info.Description}
		for key := range s.TTL {
			out.Expires = append(out.Expires, key)
		}
		slices.Sort(out.Expires)
		return out
	}
	all := map[string]string{}
	for scope, err := range st.Working().Home().Scopes(ctx) {
		fixture.Must(t, err)
		m, err := st.Working().Open(ctx, scope, nil)
		fixture.Must(t, err)
		now, err := m.Snapshot(ctx)
		fixture.Must(t, err)
		list, err := m.Checkpoints(ctx)
		fixture.Must(t, err)
		states := []state{shown(now)}
		for _, c := range list {
			s, err := m.LoadCheckpoint(ctx, c.ID)
			fixture.Must(t, err)
			states = append(states, shown(s))
		}
		text, err := json.Marshal(states)
		fixture.Must(t, err)
		all[scope.Key()] = string(text)
	}
	return all
}

func TestMakeGoldenWorking(t *testing.T) {
	t.Parallel()
	if os.Getenv("VARVE_GOLDEN") != "working" {
		t.Skip("the golden stores of working memory are made by VARVE_GOLDEN=working, once")
	}
	fixture.Must(t, os.MkdirAll(goldenWorking, 0o755))
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	clock := fixture.Ticking()
	o := func(seed byte) *varve.Options {
		return storetest.In(&varve.Options{Clock: clock, NoBackground: true, SegmentSize: 64 << 10},
			storetest.Environment{System: vfs.System{SpillBytes: 1, Inline: true, Rand: rand.NewChaCha8([32]byte{seed})}})
	}
	write := func(name string) {
		pack(t, dir, filepath.Join(goldenWorking, name))
		copied := filepath.Join(t.TempDir(), "s")
		fixture.Must(t, os.CopyFS(copied, os.DirFS(dir)))
		b, err := json.MarshalIndent(goldenScopes(t, copied, false), "", " ")
		fixture.Must(t, err)
		fixture.Must(t, os.WriteFile(filepath.Join(goldenWorking, name+".json"), append(b, '\n'), 0o644))
	}
	st, err := varve.Open(ctx, dir, o(3))
	fixture.Must(t, err)
	list := []working.Scope{{}, {Session: "s1"}, {Project: "p/1: Ü", AgentType: "coder", Agent: "a", Session: "日本"}}
	for _, scope := range list {
		m, err := st.Working().Open(ctx, scope, nil)
		fixture.Must(t, err)
		fixture.Must(t, m.SetMany(ctx,
			map[string]any{"null": nil, "text": "äöü \u2028 \"quoted\"",
				"deep": map[string]any{"list": []any{1, "two", nil, 3.5}}, "big": strings.Repeat("compressed in the log. ", 400)}))
		fixture.Must(t, m.Set(ctx, "expires", "in a hundred years", working.Expires(100*365*24*time.Hour)))
		fixture.Must(t, m.Set(ctx, "over", "by now", working.Expires(time.Millisecond)))
		_, err = m.SetTask(ctx,
			working.Task{Description: "d", Status: "running", CurrentStep: 1, TotalSteps: 3, Progress: 33.5,
				Extra: map[string]any{"branch": "main"}})
		fixture.Must(t, err)
		for i := range 5 {
			_, err := m.Append(ctx, fmt.Sprint("note ", i))
			fixture.Must(t, err)
		}
		_, err = m.Checkpoint(ctx, "first")
		fixture.Must(t, err)
		_, err = m.Increment(ctx, "n", 41)
		fixture.Must(t, err)
		_, err = m.Delete(ctx, "text")
		fixture.Must(t, err)
		cp, err := m.Checkpoint(ctx, "second")
		fixture.Must(t, err)
		fixture.Must(t, m.Set(ctx, "n", 0))
		_, err = m.Restore(ctx, cp.ID)
		fixture.Must(t, err)
	}
	fixture.Must(t, errors.Join(st.Flush(ctx), st.Close()))
	write("closed")
	st, err = varve.Open(ctx, dir, o(4))
	fixture.Must(t, err)
	m, err := st.Working().Open(ctx, list[1], nil)
	fixture.Must(t, err)
	fixture.Must(t, m.Set(ctx, "only in the log", true))
	_, err = m.Append(ctx, "only in the log")
	fixture.Must(t, err)
	_, err = m.Checkpoint(ctx, "third")
	fixture.Must(t, err)
	_, err = st.Working().Consolidate(ctx, list[0], varve.Consolidation{Values: []string{"n"}})
	fixture.Must(t, err)
	write("killed")
	fixture.Must(t, st.Close())
}

// TestGoldenWorking verifies that working memory that a former program has written is read, verified, written, restored
// from a backup and moved by the current one.
func TestGoldenWorking(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, name := range []string{"closed", "killed"} {
		name = filepath.Join(goldenWorking, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			want := map[string]string{}
			fixture.Must(t, json.Unmarshal(fixture.ReadBytes(t, name+".json"), &want))
			if len(want) < 2 {
				t.Fatal(len(want))
			}
			same := func(what string, dir string, readOnly bool) {
				t.Helper()
				got := goldenScopes(t, dir, readOnly)
				if len(got) != len(want) {
					t.Errorf("%s: %d scopes, want %d", what, len(got), len(want))
				}
				for key, text := range want {
					if got[key] != text {
						t.Errorf("%s: %s holds\n%s\nwant\n%s", what, key, got[key], text)
					}
				}
			}
			dir := fixture.Unpack(t, name)
			before := fixture.Snapshot(t, dir)
			same("read-only", dir, true)
			if !maps.Equal(fixture.Snapshot(t, dir), before) {
				t.Error("reading has changed something")
			}
			fixture.Sound(t, dir)
			same("opened", dir, false)
			fixture.Sound(t, dir)
			st, err := varve.Open(ctx, dir, nil)
			fixture.Must(t, err)
			backup := filepath.Join(t.TempDir(), "backup")
			if _, err := st.Backup(ctx, backup, varve.BackupOptions{}); err != nil {
				t.Error(err)
			}
			fixture.Must(t, st.Close())
			restored, moved := filepath.Join(t.TempDir(), "restored"), filepath.Join(t.TempDir(), "moved")
			if _, err := varve.Restore(ctx, backup, restored, nil); err != nil {
				t.Fatal(err)
			}
			same("restored", restored, false)
			if _, err := varve.Migrate(ctx, dir, moved, &varve.MigrateOptions{Switch: true}); err != nil {
				t.Fatal(err)
			}
			same("moved", moved, false)
			st, err = varve.Open(ctx, moved, nil)
			fixture.Must(t, err)
			m, err := st.Working().Open(ctx, working.Scope{Session: "s1"}, nil)
			fixture.Must(t, err)
			n, err := m.Increment(ctx, "n", 1)
			if err != nil || n != 42 {
				t.Error(n, err)
			}
			fixture.Must(t, st.Close())
			fixture.Sound(t, moved)
		})
	}
}
