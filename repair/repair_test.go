package repair_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/repair"
)

// harm is one kind of damage to a store that no process has open: what is done, the severity that verify
// reports, what the plan says, and what is different afterwards.
type harm struct {
	name  string
	do    func(t *testing.T, dir string)
	worst repair.Severity
	plan  []repair.Verb // in this order, each once
	// gone are memories that no copy held; changed have other content; extra are new.
	gone, changed, extra []string
}

const total = settled + unspilt + pending

// closedStore returns a copy of a store that was closed, with memories whose document is in a file and
// the archive, in a file and the log, and only in a file.
func closedStore(t testing.TB) string {
	st, dir := store(t)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func memories(t testing.TB, dir string) map[string]string {
	t.Helper()
	st := openStore(t, dir, &varve.Options{NoBackground: true, MustExist: true})
	defer func() { _ = st.Close() }()
	all := map[string]string{}
	for m, err := range st.Memories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all[m.ID] = m.Content
	}
	return all
}

func options() *varve.Options {
	return &varve.Options{SegmentSize: segments, CacheBytes: -1, NoBackground: true}
}

func planOf(t testing.TB, dir string) *varve.RepairPlan {
	t.Helper()
	p, err := varve.PlanRepair(t.Context(), dir, options(), varve.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// apply repairs a store and fails the test if any finding remains except files in quarantine.
func apply(t testing.TB, p *varve.RepairPlan) *varve.RepairReport {
	t.Helper()
	r, err := p.Apply(t.Context())
	for _, d := range r.Done {
		t.Logf("done: %s: %s %v", d.Action, d.Result, d.Err)
		if d.Err != nil {
			t.Errorf("%s: %v", d.Action, d.Err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Remaining {
		if f.Severity != repair.Info {
			t.Errorf("remains: %s", f)
		}
	}
	return r
}

func harmed(name string, do func(t *testing.T, dir string)) harm { return harm{name: name, do: do} }

func (h harm) healed(worst repair.Severity, plan ...repair.Verb) harm {
	h.worst, h.plan = worst, plan
	return h
}

func (h harm) loses(ids ...string) harm { h.gone = ids; return h }

func (h harm) changes(ids ...string) harm { h.changed = ids; return h }

func (h harm) adds(ids ...string) harm { h.extra = ids; return h }

// noCopies removes log and archive of what is flushed of a memory: its file is the only copy.
func noCopies(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(file(dir, "wal/archive")); err != nil {
		t.Fatal(err)
	}
}

var harms = []harm{
	harmed("index deleted", func(t *testing.T, dir string) {
		remove(t, file(dir, "memory_index.json"))
		_ = os.Remove(file(dir, "memory_index.delta.json"))
	}).healed(repair.Healable, repair.Reopen),
	harmed("index emptied", func(t *testing.T, dir string) {
		write(t, file(dir, "memory_index.json"), nil)
	}).healed(repair.Healable, repair.SetIndexAside),
	harmed("index {}", func(t *testing.T, dir string) {
		write(t, file(dir, "memory_index.json"), []byte("{}"))
	}).healed(repair.Healable, repair.SetIndexAside),
	harmed("an old index", func(t *testing.T, dir string) {
		write(t, file(dir, "memory_index.json"), bytesOf(t, file(dir, first(t, dir, "backups/memory_index.*.json"))))
		_ = os.Remove(file(dir, "memory_index.delta.json"))
	}).healed(repair.Healable, repair.SetIndexAside),
	harmed("index cut in half", func(t *testing.T, dir string) {
		b := bytesOf(t, file(dir, "memory_index.json"))
		write(t, file(dir, "memory_index.json"), b[:len(b)/2])
	}).healed(repair.Healable, repair.SetIndexAside),
	harmed("bit in the index", func(t *testing.T, dir string) {
		flip(t, file(dir, "memory_index.json"), 20000)
	}).healed(repair.Healable, repair.Rebuild),
	harmed("last segment deleted", func(t *testing.T, dir string) {
		name, _ := lastFrame(t, dir)
		remove(t, name)
	}).healed(repair.Healable, repair.NewLog),
	harmed("wal deleted", func(t *testing.T, dir string) {
		if err := os.RemoveAll(file(dir, "wal")); err != nil {
			t.Fatal(err)
		}
	}).healed(repair.Healable, repair.Reopen),
	harmed("bit in a memory", func(t *testing.T, dir string) {
		flip(t, file(dir, memoryPath(150)), 40)
	}).healed(repair.Healable, repair.Restore),
	harmed("bit in a memory, no copy", func(t *testing.T, dir string) {
		noCopies(t, dir)
		flip(t, file(dir, memoryPath(150)), 41)
	}).healed(repair.Lost, repair.Salvage).changes(id(150)),
	harmed("bit in the last acknowledged frame", func(t *testing.T, dir string) {
		name, at := lastFrame(t, dir)
		flip(t, name, at)
	}).healed(repair.Healable, repair.NewLog),
	harmed("bit in a released segment", func(t *testing.T, dir string) {
		spill(t, dir)
		flip(t, file(dir, first(t, dir, "wal/*.wal")), 5000)
	}).healed(repair.Healable, repair.SetSegment),
	harmed("memory truncated", func(t *testing.T, dir string) {
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, memoryPath(9)), b[:len(b)/2])
	}).healed(repair.Healable, repair.Restore),
	harmed("memory truncated, no copy", func(t *testing.T, dir string) {
		noCopies(t, dir)
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, memoryPath(9)), b[:len(b)/2])
	}).healed(repair.Lost, repair.Salvage).changes(id(9)),
	harmed("memory empty", func(t *testing.T, dir string) {
		write(t, file(dir, memoryPath(9)), nil)
	}).healed(repair.Healable, repair.Restore),
	harmed("memory empty, no copy", func(t *testing.T, dir string) {
		noCopies(t, dir)
		write(t, file(dir, memoryPath(9)), nil)
	}).healed(repair.Lost, repair.RecordLost).loses(id(9)),
	harmed("memory without anything to read, no copy", func(t *testing.T, dir string) {
		noCopies(t, dir)
		write(t, file(dir, memoryPath(9)), []byte("plain text"))
	}).healed(repair.Lost, repair.RecordLost).loses(id(9)),
	harmed("copy under another name", func(t *testing.T, dir string) {
		write(t, file(dir, "memories/copy.json"), bytesOf(t, file(dir, memoryPath(9))))
	}).healed(repair.Healable, repair.SetAside),
	harmed("10 files deleted", func(t *testing.T, dir string) {
		for i := range 10 {
			remove(t, file(dir, memoryPath(i*50)))
		}
	}).healed(repair.Healable, slices.Repeat([]repair.Verb{repair.Restore}, 10)...),
	harmed("10 files deleted, no copy", func(t *testing.T, dir string) {
		noCopies(t, dir)
		for i := range 10 {
			remove(t, file(dir, memoryPath(i)))
		}
	}).healed(repair.Lost, slices.Repeat([]repair.Verb{repair.RecordLost}, 10)...).loses(ids(0, 10)...),
	harmed("strangers", func(t *testing.T, dir string) {
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, "memories/new.json"), bytes.Replace(b, []byte(id(9)), []byte("new"), 1))
		write(t, file(dir, "memories/other.json"), bytes.Replace(b, []byte(id(9)), []byte("elsewhere"), 1))
		write(t, file(dir, "memories/junk.json"), []byte(`{"id": `))
		write(t, file(dir, "memories/notes.txt"), []byte("mine"))
	}).healed(repair.Healable, repair.SetAside, repair.Adopt, repair.Adopt).adds("new", "elsewhere"),
	harmed("merge conflict", func(t *testing.T, dir string) {
		conflict(t, file(dir, memoryPath(9)))
	}).healed(repair.Healable, repair.Restore),
	harmed("merge conflict, no copy", func(t *testing.T, dir string) {
		noCopies(t, dir)
		conflict(t, file(dir, memoryPath(9)))
	}).healed(repair.Lost, repair.Salvage),
	harmed("temp files left", func(t *testing.T, dir string) {
		if err := os.MkdirAll(file(dir, "tmp/0123456789abcdef/0"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, file(dir, "tmp/0123456789abcdef/0/1"), []byte("half an ed"))
		write(t, file(dir, "wal/77-1.new"), make([]byte, 100))
		write(t, file(dir, "tmp/index.0123456789abcdef"), []byte("{"))
	}).healed(repair.Info, repair.Tidy),
	harmed("checkpoint deleted", func(t *testing.T, dir string) {
		remove(t, file(dir, "checkpoint"))
	}).healed(repair.Healable, repair.NewMarks),
	harmed("both slots of the checkpoint", func(t *testing.T, dir string) {
		flip(t, file(dir, "checkpoint"), 20)
		flip(t, file(dir, "checkpoint"), 4096+20)
	}).healed(repair.Healable, repair.NewMarks),
	harmed("a slot of the checkpoint", func(t *testing.T, dir string) {
		flip(t, file(dir, "checkpoint"), 20)
	}).healed(repair.Healable, repair.NewMarks),
	harmed("config", func(t *testing.T, dir string) {
		write(t, file(dir, "config.json"), []byte(`{"varve":1,"flush_threshold":-4,"index_backup_count":2}`))
	}).healed(repair.Healable, repair.FixConfig),
	harmed("bit in the archive", func(t *testing.T, dir string) {
		flip(t, file(dir, first(t, dir, "wal/archive/*.zst")), 1000)
	}).healed(repair.Lost, repair.SetAside),
	harmed("garbage in wal", func(t *testing.T, dir string) {
		write(t, file(dir, "wal/99999999.wal"), bytes.Repeat([]byte("garbage "), 100))
		write(t, file(dir, "wal/notes"), []byte("x"))
		write(t, file(dir, "wal/archive/notes"), []byte("x"))
	}).healed(repair.Healable, repair.SetAside, repair.SetAside, repair.SetAside),
	harmed("a folder in a memory's place", func(t *testing.T, dir string) {
		remove(t, file(dir, memoryPath(9)))
		if err := os.MkdirAll(file(dir, memoryPath(9)+"/x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}).healed(repair.Healable, repair.Restore),
	harmed("edited", func(t *testing.T, dir string) {
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, memoryPath(9)), bytes.Replace(b, []byte("memory 9 "), []byte("memory nine "), 1))
	}).healed(repair.Healable, repair.Adopt).changes(id(9)),
	harmed("bit in a backup", func(t *testing.T, dir string) {
		flip(t, file(dir, first(t, dir, "backups/memory_index.*.json")), 300)
	}).healed(repair.Healable, repair.SetAside),
}

// spill writes the index, so that the older segments of the log are not needed.
func spill(t *testing.T, dir string) {
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func ids(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, id(i))
	}
	return list
}

func conflict(t *testing.T, name string) {
	t.Helper()
	b := bytesOf(t, name)
	line := `  "quickrecal_score": 0,` + "\n"
	if !bytes.Contains(b, []byte(line)) {
		t.Fatalf("%s", b)
	}
	write(t, name, bytes.Replace(b, []byte(line), []byte("<<<<<<< HEAD\n"+line+"=======\n  \"quickrecal_score\": 5,\n>>>>>>> other\n"), 1))
}

// lastFrame returns the segment and the offset of the newest frame's payload.
func lastFrame(t *testing.T, dir string) (string, int64) {
	t.Helper()
	names, err := filepath.Glob(file(dir, "wal/*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if b := bytes.TrimRight(bytesOf(t, name), "\x00"); len(b) > 0 && !bytes.Equal(b[:8], make([]byte, 8)) {
			return name, int64(len(b) - 20)
		}
	}
	t.Fatal("no segment")
	return "", 0
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for i, h := range harms {
		if i%proofs.Every(3) != 0 {
			continue
		}
		t.Run(strings.ReplaceAll(h.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := closedStore(t)
			before := memories(t, dir)
			h.do(t, dir)
			harmedTree := tree(t, dir)
			p := planOf(t, dir)
			if now := tree(t, dir); now != harmedTree {
				t.Errorf("planning changed something:\n%s\nbefore\n%s", now, harmedTree)
			}
			var verbs []repair.Verb
			for _, a := range p.Actions {
				t.Logf("planned: %s", a)
				verbs = append(verbs, a.Do)
				if len(a.Findings) == 0 {
					t.Errorf("%s is for nothing", a)
				}
			}
			if p.Worst != h.worst || !slices.Equal(verbs, h.plan) {
				t.Errorf("verify says %s, the plan %q\nwant %s, %q", p.Worst, verbs, h.worst, h.plan)
				for _, a := range p.Actions {
					t.Log(a.Findings)
				}
			}
			for _, a := range p.Actions {
				history := h.worst != repair.Lost && strings.Contains(a.Loses, "old version") // see TestPlanCountsLost
				if loses := a.Loses != "" && !history; loses != (h.worst == repair.Lost) && a.Do != repair.FixConfig {
					t.Errorf("%s: loses %q", a, a.Loses)
				}
			}
			apply(t, p)
			after := memories(t, dir)
			for _, g := range h.gone {
				if _, ok := after[g]; ok {
					t.Errorf("%s is still there", g)
				}
				delete(before, g)
			}
			for _, c := range h.changed {
				if after[c] == "" || after[c] == before[c] {
					t.Errorf("%s is %.60q", c, after[c])
				}
				before[c] = after[c]
			}
			for _, e := range h.extra {
				if before[e] = after[e]; after[e] == "" {
					t.Errorf("%s is not there", e)
				}
			}
			compare(t, before, after)
			if again := planOf(t, dir); len(again.Actions) > 0 {
				t.Errorf("there is more to do: %s", again.Actions)
			}
		})
	}
}

func compare(t testing.TB, want, got map[string]string) {
	t.Helper()
	for id, content := range want {
		if got[id] != content {
			t.Errorf("%s is %.60q, want %.60q", id, got[id], content)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			t.Errorf("%s is new", id)
		}
	}
}

// tree lists the names, sizes and times of everything in a folder.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			fmt.Fprintln(&b, strings.TrimPrefix(path, dir), info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRepairClone: a clone that git made has neither log nor index.
func TestRepairClone(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there; install it")
	}
	dir := closedStore(t)
	before := memories(t, dir)
	clone := filepath.Join(t.TempDir(), "clone")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"}, {"clone", "-q", ".", clone},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", err, out)
		}
	}
	p := planOf(t, clone)
	if len(p.Actions) != 1 || p.Actions[0].Do != repair.Reopen || p.Worst != repair.Healable {
		t.Errorf("%s %v", p.Worst, p.Actions)
	}
	apply(t, p)
	compare(t, before, memories(t, clone))
}

// TestRepairCopies: a store's folder is copied, and both copies are used.
func TestRepairCopies(t *testing.T) {
	t.Parallel()
	dir := closedStore(t)
	before := memories(t, dir)
	other := filepath.Join(t.TempDir(), "copy")
	fixture.CopyDir(t, dir, other)
	for i, d := range []string{dir, other} {
		st := openStore(t, d, &varve.Options{NoBackground: true})
		if _, err := st.Put(t.Context(), varve.Memory{ID: "both", Content: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		before["both"] = fmt.Sprint(i)
		if p := planOf(t, d); len(p.Actions) > 0 {
			t.Error(p.Actions)
		}
		compare(t, before, memories(t, d))
	}
}

// crashedStore returns a copy of a store as a kill -9 leaves it: its newest memories are in the log
// only.
func crashedStore(t testing.TB) string {
	st, live := store(t)
	dir := filepath.Join(t.TempDir(), "crashed")
	fixture.CopyDir(t, live, dir)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRepairLog: damage to entries that are only in the log. The entries behind it are kept.
func TestRepairLog(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, c := range []struct {
		name string
		do   func(t *testing.T, dir, segment string)
		lost int // the maximum that is lost; -1: all of the segment
	}{
		{"payload", func(t *testing.T, dir, name string) { flip(t, file(dir, name), 5000) }, 1},
		{"header", func(t *testing.T, dir, name string) { flip(t, file(dir, name), 128+40) }, 1},
		{"start", func(t *testing.T, dir, name string) { flip(t, file(dir, name), 70) }, 0},
		{"gone", func(t *testing.T, dir, name string) { remove(t, file(dir, name)) }, -1},
		{"zeroed", func(t *testing.T, dir, name string) { write(t, file(dir, name), make([]byte, segments)) }, -1},
		{"and the index", func(t *testing.T, dir, name string) {
			flip(t, file(dir, name), 5000)
			remove(t, file(dir, "memory_index.json"))
		}, 1},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := crashedStore(t)
			sound := filepath.Join(t.TempDir(), "sound")
			fixture.CopyDir(t, dir, sound)
			before := memories(t, sound)
			name := pendingSegment(t, dir)
			held := 0
			b := bytesOf(t, file(dir, name))
			for i := range total {
				held += min(1, bytes.Count(b, []byte(`"id": "`+id(i))))
			}
			c.do(t, dir, name)
			p := planOf(t, dir)
			if c.name != "and the index" && p.Worst != repair.Lost || len(p.Actions) == 0 {
				t.Fatalf("%s %v", p.Worst, p.Actions)
			}
			apply(t, p)
			after := memories(t, dir)
			lost := 0
			for id := range before {
				if _, ok := after[id]; !ok {
					delete(before, id)
					lost++
				}
			}
			if want := c.lost; lost != want && want >= 0 || want < 0 && lost != held {
				t.Errorf("%d were lost, want %d; the segment held %d", lost, c.lost, held)
			}
			compare(t, before, after)
			if again := planOf(t, dir); len(again.Actions) > 0 {
				t.Errorf("there is more to do: %s", again.Actions)
			}
			// The store works like any other: what is written now survives.
			st := openStore(t, dir, &varve.Options{NoBackground: true})
			put(t, st, 1000, 1100)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			if again := planOf(t, dir); len(again.Actions) > 0 || len(memories(t, dir)) != len(after)+100 {
				t.Errorf("%d memories, more to do: %s", len(memories(t, dir)), again.Actions)
			}
		})
	}
}
