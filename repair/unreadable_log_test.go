package repair_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/repair"
)

// TestUnreadableLog: where neither a segment nor the checkpoint says how to read the log, the documents
// are enough. The plan says what that loses, and never that nothing is lost.
func TestUnreadableLog(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir string){
		"checkpoint damaged": func(t *testing.T, dir string) { scramble(t, filepath.Join(dir, "checkpoint"), 8192) },
		"checkpoint missing": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "checkpoint"))) },
		"index missing too": func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "checkpoint")))
			must(t, os.Remove(filepath.Join(dir, "memory_index.json")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := closedStore(t)
			want := len(memories(t, dir))
			segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
			must(t, err)
			for _, s := range segments {
				scramble(t, s, 4096)
			}
			damage(t, dir)
			p := planOf(t, dir)
			if p.Worst != repair.Lost {
				t.Errorf("the plan's worst is %v", p.Worst)
			}
			for _, s := range segments {
				rel := "wal/" + filepath.Base(s)
				if !slices.ContainsFunc(p.Actions, func(a repair.Action) bool { return a.Do == repair.SetAside && a.Path == rel && a.Loses != "" }) {
					t.Errorf("the plan does not set %s aside: %v", rel, p.Actions)
				}
			}
			apply(t, p)
			if got := memories(t, dir); len(got) != want {
				t.Errorf("%d memories, want %d", len(got), want)
			}
			if p := planOf(t, dir); len(p.Actions) > 0 {
				t.Errorf("there is more to do: %v", p.Actions)
			}
			st := openStore(t, dir, &varve.Options{NoBackground: true})
			_, err = st.Put(t.Context(), varve.Memory{ID: "after", Content: "it goes on"})
			must(t, err)
			must(t, st.Close())
		})
	}
}

// TestUnreadableLogTwoRepairs: of two repairs with the same plan, the second does not set aside the log
// that the first has begun, with what was written to it since.
func TestUnreadableLogTwoRepairs(t *testing.T) {
	t.Parallel()
	dir := closedStore(t)
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	must(t, err)
	for _, s := range segments {
		scramble(t, s, 4096)
	}
	must(t, os.Remove(filepath.Join(dir, "checkpoint")))
	first, second := planOf(t, dir), planOf(t, dir)
	apply(t, first)
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	for _, text := range []string{"one", "two"} {
		_, err = st.Put(t.Context(), varve.Memory{ID: "after", Content: text})
		must(t, err)
	}
	must(t, st.Close())
	for _, d := range apply(t, second).Done {
		if d.Do == repair.SetAside && d.Where != "" {
			t.Errorf("%s: %s", d.Action, d.Result)
		}
	}
	st = openStore(t, dir, &varve.Options{NoBackground: true})
	var texts []string
	for v, err := range st.History(t.Context(), "after") {
		must(t, err)
		texts = append(texts, string(v.Document))
	}
	must(t, st.Close())
	if len(texts) != 2 {
		t.Errorf("the history of what was written after the first repair: %q", texts)
	}
}

// TestUnreadableLogInPart: some of several segments cannot be read, or one belongs to another log, and
// there is no checkpoint: one repair fixes that, and nothing that is in files is lost.
func TestUnreadableLogInPart(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, segments []string){
		"the first": func(t *testing.T, s []string) { scramble(t, s[0], 4096) },
		"all but the last": func(t *testing.T, s []string) {
			for _, s := range s[:len(s)-1] {
				scramble(t, s, 4096)
			}
		},
		"the newest":        func(t *testing.T, s []string) { scramble(t, s[len(s)-1], 4096) },
		"all of the newest": func(t *testing.T, s []string) { scramble(t, s[len(s)-1], segments) },
		"one under another name": func(t *testing.T, s []string) {
			b := bytesOf(t, s[0])
			for _, s := range s {
				scramble(t, s, 4096)
			}
			write(t, s[len(s)-1], b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := closedStore(t)
			want := len(memories(t, dir))
			segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
			must(t, err)
			if len(segments) < 2 {
				t.Fatal(segments)
			}
			damage(t, segments)
			must(t, os.Remove(filepath.Join(dir, "checkpoint")))
			apply(t, planOf(t, dir))
			if got := memories(t, dir); len(got) != want {
				t.Errorf("%d memories, want %d", len(got), want)
			}
			if p := planOf(t, dir); len(p.Actions) > 0 {
				t.Errorf("there is more to do: %v", p.Actions)
			}
		})
	}
}

// TestUnreadableNewestSegment: the newest segment cannot be read from its beginning, there is no
// checkpoint, and it has entries that no file has yet. The entries behind the damage are kept, the plan
// says that the others may be lost, and one repair is enough.
func TestUnreadableNewestSegment(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"its first block": 4096, "all of it": segments} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, dir := store(t)
			newest := func() string {
				list, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
				must(t, err)
				list = slices.DeleteFunc(list, func(s string) bool { return bytes.Equal(bytesOf(t, s)[:64], make([]byte, 64)) })
				return list[len(list)-1]
			}
			want, before := memories(t, dir), newest()
			ids := []string{}
			for i := 0; newest() == before || len(ids) < 12; i++ {
				if newest() != before {
					ids = append(ids, fmt.Sprint("unflushed", i))
				}
				_, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("unflushed", i), Content: strings.Repeat("text ", 1+i%7)})
				must(t, err)
			}
			damaged := newest()
			dir2 := filepath.Join(t.TempDir(), "s")
			must(t, os.CopyFS(dir2, os.DirFS(dir))) // as a crash leaves it
			must(t, os.Remove(filepath.Join(dir2, "checkpoint")))
			damaged = filepath.Join(dir2, "wal", filepath.Base(damaged))
			scramble(t, damaged, n)
			p := planOf(t, dir2)
			if p.Worst != repair.Lost || !slices.ContainsFunc(p.Actions, func(a repair.Action) bool { return strings.Contains(a.Loses, "acknowledged writes") }) {
				t.Errorf("the plan does not say what is lost: %v, %v", p.Worst, p.Actions)
			}
			apply(t, p)
			got := memories(t, dir2)
			for id := range want {
				if _, ok := got[id]; !ok {
					t.Errorf("%s is lost", id)
				}
			}
			if last := ids[len(ids)-1]; n == 4096 && got[last] == "" {
				t.Errorf("%s is behind the damage, and lost", last)
			}
			if p := planOf(t, dir2); len(p.Actions) > 0 {
				t.Errorf("there is more to do: %v", p.Actions)
			}
		})
	}
}

// scramble overwrites the beginning of a file with random bytes.
func scramble(t *testing.T, name string, n int) {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	_, err = rand.Read(b[:min(n, len(b))])
	must(t, err)
	must(t, os.WriteFile(name, b, 0o600))
}
