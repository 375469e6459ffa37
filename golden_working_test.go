package varve

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

	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/working"
)

// The golden stores of working memory, testdata/golden/working, are made with
//
//	VARVE_GOLDEN=working go test . -run '^TestMakeGoldenWorking$'
//
// as those of goldenRoot are: once, and never again.
var goldenWorking = filepath.Join(goldenRoot, "working")

// goldenScopes is all that the scopes of a store hold, by their keys.
func goldenScopes(t *testing.T, dir string, readOnly bool) map[string]string {
	t.Helper()
	ctx := context.Background()
	st, err := Open(ctx, dir, &Options{ReadOnly: readOnly, NoBackground: true})
	must(t, err)
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
		must(t, err)
		m, err := st.Working().Open(ctx, scope, nil)
		must(t, err)
		now, err := m.Snapshot(ctx)
		must(t, err)
		list, err := m.Checkpoints(ctx)
		must(t, err)
		states := []state{shown(now)}
		for _, c := range list {
			s, err := m.LoadCheckpoint(ctx, c.ID)
			must(t, err)
			states = append(states, shown(s))
		}
		text, err := json.Marshal(states)
		must(t, err)
		all[scope.Key()] = string(text)
	}
	return all
}

func TestMakeGoldenWorking(t *testing.T) {
	t.Parallel()
	if os.Getenv("VARVE_GOLDEN") != "working" {
		t.Skip("the golden stores of working memory are made by VARVE_GOLDEN=working, once")
	}
	must(t, os.MkdirAll(goldenWorking, 0o755))
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	clock := ticking()
	o := func(seed byte) *Options {
		return storetest.In(&Options{Clock: clock, NoBackground: true, SegmentSize: 64 << 10}, storetest.Environment{System: vfs.System{SpillBytes: 1, Inline: true, Rand: rand.NewChaCha8([32]byte{seed})}})
	}
	write := func(name string) {
		pack(t, dir, filepath.Join(goldenWorking, name))
		copied := filepath.Join(t.TempDir(), "s")
		must(t, os.CopyFS(copied, os.DirFS(dir)))
		b, err := json.MarshalIndent(goldenScopes(t, copied, false), "", " ")
		must(t, err)
		must(t, os.WriteFile(filepath.Join(goldenWorking, name+".json"), append(b, '\n'), 0o644))
	}
	st, err := Open(ctx, dir, o(3))
	must(t, err)
	list := []working.Scope{{}, {Session: "s1"}, {Project: "p/1: Ü", AgentType: "coder", Agent: "a", Session: "日本"}}
	for _, scope := range list {
		m, err := st.Working().Open(ctx, scope, nil)
		must(t, err)
		must(t, m.SetMany(ctx, map[string]any{"null": nil, "text": "äöü \u2028 \"quoted\"", "deep": map[string]any{"list": []any{1, "two", nil, 3.5}}, "big": strings.Repeat("compressed in the log. ", 400)}))
		must(t, m.Set(ctx, "expires", "in a hundred years", working.Expires(100*365*24*time.Hour)))
		must(t, m.Set(ctx, "over", "by now", working.Expires(time.Millisecond)))
		_, err = m.SetTask(ctx, working.Task{Description: "d", Status: "running", CurrentStep: 1, TotalSteps: 3, Progress: 33.5, Extra: map[string]any{"branch": "main"}})
		must(t, err)
		for i := range 5 {
			_, err := m.Append(ctx, fmt.Sprint("note ", i))
			must(t, err)
		}
		_, err = m.Checkpoint(ctx, "first")
		must(t, err)
		_, err = m.Increment(ctx, "n", 41)
		must(t, err)
		_, err = m.Delete(ctx, "text")
		must(t, err)
		cp, err := m.Checkpoint(ctx, "second")
		must(t, err)
		must(t, m.Set(ctx, "n", 0))
		_, err = m.Restore(ctx, cp.ID)
		must(t, err)
	}
	must(t, errors.Join(st.Flush(ctx), st.Close()))
	write("closed")
	st, err = Open(ctx, dir, o(4))
	must(t, err)
	m, err := st.Working().Open(ctx, list[1], nil)
	must(t, err)
	must(t, m.Set(ctx, "only in the log", true))
	_, err = m.Append(ctx, "only in the log")
	must(t, err)
	_, err = m.Checkpoint(ctx, "third")
	must(t, err)
	_, err = st.Working().Consolidate(ctx, list[0], Consolidation{Values: []string{"n"}})
	must(t, err)
	write("killed")
	must(t, st.Close())
}

// Working memory that a program of the past has written is read, verified, written, put
// back from a backup and moved by today's.
func TestGoldenWorking(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, name := range []string{"closed", "killed"} {
		name = filepath.Join(goldenWorking, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			want := map[string]string{}
			must(t, json.Unmarshal(readBytes(t, name+".json"), &want))
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
			dir := unpack(t, name)
			before := snapshot(t, dir)
			same("read-only", dir, true)
			if !maps.Equal(snapshot(t, dir), before) {
				t.Error("reading has changed something")
			}
			well(t, dir)
			same("opened", dir, false)
			well(t, dir)
			st, err := Open(ctx, dir, nil)
			must(t, err)
			backup := filepath.Join(t.TempDir(), "backup")
			if _, err := st.Backup(ctx, backup, BackupOptions{}); err != nil {
				t.Error(err)
			}
			must(t, st.Close())
			restored, moved := filepath.Join(t.TempDir(), "restored"), filepath.Join(t.TempDir(), "moved")
			if _, err := Restore(ctx, backup, restored, nil); err != nil {
				t.Fatal(err)
			}
			same("restored", restored, false)
			if _, err := Migrate(ctx, dir, moved, &MigrateOptions{Switch: true}); err != nil {
				t.Fatal(err)
			}
			same("moved", moved, false)
			st, err = Open(ctx, moved, nil)
			must(t, err)
			m, err := st.Working().Open(ctx, working.Scope{Session: "s1"}, nil)
			must(t, err)
			n, err := m.Increment(ctx, "n", 1)
			if err != nil || n != 42 {
				t.Error(n, err)
			}
			must(t, st.Close())
			well(t, moved)
		})
	}
}
