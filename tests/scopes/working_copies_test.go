package scopes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/working"
)

// TestWorkingBackup: a backup has the working memory; a store that is restored from it has it as of the
// moment, and never assigns a version that the old store may have assigned.
func TestWorkingBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
	fixture.Must(t, err)
	defer st.Close()
	m := wm(t, st)
	fixture.Must(t, m.Set(t.Context(), "k", "first"))
	cp, err := m.Checkpoint(t.Context(), "c")
	fixture.Must(t, err)
	still, err := st.Working().Open(t.Context(), working.Scope{Session: "still"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, still.Set(t.Context(), "k", "still"))
	gone, err := st.Working().Open(t.Context(), working.Scope{Session: "gone"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, gone.Set(t.Context(), "k", "gone"))
	fixture.Must(t, st.Flush(t.Context()))
	fixture.Must(t, m.Set(t.Context(), "k", "second"))

	copied := filepath.Join(t.TempDir(), "copy")
	info, err := st.Backup(t.Context(), copied, varve.BackupOptions{})
	fixture.Must(t, err)
	if info.Scopes != 3 {
		t.Errorf("%d scopes in the backup", info.Scopes)
	}
	fixture.Must(t, m.Set(t.Context(), "k", "third")) // is in the living log only
	mark := st.Admin().Stats().Durable
	_, err = gone.Drop(t.Context())
	fixture.Must(t, err)
	late, err := st.Working().Open(t.Context(), working.Scope{Session: "late"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, late.Set(t.Context(), "k", "late"))
	fixture.Must(t, m.Set(t.Context(), "k", "fourth"))
	before, _, err := m.Entry(t.Context(), "k")
	fixture.Must(t, err)

	for i, c := range []struct {
		o    varve.RestoreOptions
		k    string
		gone bool
	}{
		{varve.RestoreOptions{}, "second", false},
		{varve.RestoreOptions{Log: dir, Version: mark - 1}, "third", false},
		{varve.RestoreOptions{Log: dir}, "fourth", true},
	} {
		c.o.Options = &varve.Options{NoBackground: true}
		to := filepath.Join(t.TempDir(), fmt.Sprint("restored", i))
		report, err := varve.Restore(t.Context(), copied, to, &c.o)
		fixture.Must(t, err)
		again, err := varve.Open(t.Context(), to, &varve.Options{NoBackground: true})
		fixture.Must(t, err)
		defer again.Close()
		n := wm(t, again)
		hasValue(t, n, "k", c.k)
		for name, want := range map[string]bool{"still": true, "gone": !c.gone, "late": c.gone} {
			w, err := again.Working().Open(t.Context(), working.Scope{Session: name}, nil)
			fixture.Must(t, err)
			if _, found, err := w.Get(t.Context(), "k"); err != nil || found != want {
				t.Errorf("restored %d: %s: %v, %v (%+v)", i, name, found, err, report)
			}
		}
		fixture.Must(t, n.Set(t.Context(), "k", "new"))
		after, _, err := n.Entry(t.Context(), "k")
		fixture.Must(t, err)
		if after.Version < before.Version+1<<32 {
			t.Errorf("version %d, the old store may have got there from %d", after.Version, before.Version)
		}
		_, err = n.Restore(t.Context(), cp.ID)
		fixture.Must(t, err)
		hasValue(t, n, "k", "first")
		fixture.Must(t, again.Flush(t.Context()))
		verifyClean(t, again)
	}
}

// TestWorkingMoved: a store that is moved takes its working memory along, and continues from it.
func TestWorkingMoved(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	fixture.Must(t, wm(t, st).Set(t.Context(), "k", 1))
	fixture.Must(t, st.Close())
	_, err = varve.Migrate(t.Context(), dir, to, &varve.MigrateOptions{Switch: true, RemoveSource: true})
	fixture.Must(t, err)
	st, err = varve.Open(t.Context(), to, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	defer st.Close()
	m := wm(t, st)
	hasValue(t, m, "k", 1.0)
	fixture.Must(t, m.Set(t.Context(), "l", 2))
	fixture.Must(t, st.Flush(t.Context()))
	verifyClean(t, st)
}

// TestWorkingClone: a folder without log, as in a clone by git, has the working memory in its files.
func TestWorkingClone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
		fixture.Must(t, err)
		return st
	}
	st := open()
	for i := range 20 {
		fixture.Must(t, wm(t, st).Set(t.Context(), "k", i))
	}
	_, err := st.Put(t.Context(), varve.Memory{ID: "m", Content: "c"})
	fixture.Must(t, err)
	fixture.Must(t, st.Close())
	for _, name := range []string{"wal", "checkpoint", "memory_index.json", "tmp", "backups"} {
		fixture.Must(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	for i := range 3 {
		st = open()
		m := wm(t, st)
		hasValue(t, m, "k", float64(19+i))
		fixture.Must(t, m.Set(t.Context(), "k", 20+i))
		hasValue(t, m, "k", float64(20+i))
		verifyClean(t, st)
		fixture.Must(t, st.Close())
	}
}

// TestWorkingNewLog: when the log is damaged and begins again, working memory that was only in the log
// is written to the file, including the entries behind the damage.
func TestWorkingNewLog(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
	fixture.Must(t, err)
	m := wm(t, st)
	fixture.Must(t, m.Set(t.Context(), "flushed", "yes"))
	fixture.Must(t, st.Flush(t.Context()))
	fixture.Must(t, m.Set(t.Context(), "before", "yes"))
	fixture.Must(t, m.Set(t.Context(), "damaged", "SPOIL-ME"))
	fixture.Must(t, m.Set(t.Context(), "behind", "yes"))
	other, err := st.Working().Open(t.Context(), working.Scope{Session: "only in the log"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, other.Set(t.Context(), "k", "v"))
	err = os.CopyFS(to, os.DirFS(dir))   // as kill -9 leaves it
	for errors.Is(err, fs.ErrNotExist) { // the next segment got its name meanwhile
		fixture.Must(t, os.RemoveAll(to))
		err = os.CopyFS(to, os.DirFS(dir))
	}
	fixture.Must(t, err)
	fixture.Must(t, st.Close())

	segments, err := filepath.Glob(filepath.Join(to, "wal", "*.wal"))
	fixture.Must(t, err)
	spoiled := false
	for _, name := range segments {
		text, err := os.ReadFile(name)
		fixture.Must(t, err)
		if i := strings.Index(string(text), "SPOIL-ME"); i >= 0 {
			text[i] = 'X'
			fixture.Must(t, os.WriteFile(name, text, 0o600))
			spoiled = true
		}
	}
	if !spoiled {
		t.Fatal("the entry is in no segment")
	}
	plan, err := varve.PlanRepair(t.Context(), to, nil, varve.VerifyOptions{})
	fixture.Must(t, err)
	report, err := plan.Apply(t.Context())
	fixture.Must(t, err)
	if len(report.Remaining) > 0 {
		t.Errorf("%v", report.Remaining)
	}
	st, err = varve.Open(t.Context(), to, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	defer st.Close()
	m = wm(t, st)
	for _, key := range []string{"flushed", "before", "behind"} {
		hasValue(t, m, key, "yes")
	}
	other, err = st.Working().Open(t.Context(), working.Scope{Session: "only in the log"}, nil)
	fixture.Must(t, err)
	hasValue(t, other, "k", "v")
	fixture.Must(t, m.Set(t.Context(), "after", "yes"))
	fixture.Must(t, st.Flush(t.Context()))
	hasValue(t, m, "after", "yes")
	verifyClean(t, st)
}

// TestWorkingDamage: verify names a scope's file that cannot be read, and repair rebuilds it from log
// and archive; its bytes stay in quarantine.
func TestWorkingDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, path string)
	}{
		{"a flipped bit", func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			fixture.Must(t, err)
			text[len(text)/2] ^= 0x80
			fixture.Must(t, os.WriteFile(path, text, 0o600))
		}},
		{"cut", func(t *testing.T, path string) { fixture.Must(t, os.Truncate(path, 100)) }},
		{"empty", func(t *testing.T, path string) { fixture.Must(t, os.Truncate(path, 0)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			open := func() *varve.Store {
				st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
				fixture.Must(t, err)
				return st
			}
			st := open()
			m := wm(t, st)
			for i := range 100 {
				fixture.Must(t, m.Set(t.Context(), fmt.Sprint("k", i%10), strings.Repeat("x", 2000)+fmt.Sprint(i)))
			}
			fixture.Must(t, st.Admin().Compact(t.Context()))
			fixture.Must(t, st.Close())
			c.spoil(t, scopeFile(t, dir))

			st = open()
			found := 0
			for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
				fixture.Must(t, err)
				if f.Kind != repair.WorkingDamaged || f.Path != "working/"+filepath.Base(scopeFile(t, dir)) {
					t.Errorf("%v", f)
				}
				found++
			}
			if found != 1 {
				t.Errorf("%d findings", found)
			}
			fixture.Must(t, st.Close())
			plan, err := varve.PlanRepair(t.Context(), dir, nil, varve.VerifyOptions{})
			fixture.Must(t, err)
			report, err := plan.Apply(t.Context())
			fixture.Must(t, err)
			if len(report.Remaining) > 0 || len(report.Done) == 0 || report.Done[0].Err != nil {
				t.Fatalf("%+v", report)
			}
			t.Log(report.Done[0].Result)
			st = open()
			defer st.Close()
			m = wm(t, st)
			for i := range 10 {
				hasValue(t, m, fmt.Sprint("k", i), strings.Repeat("x", 2000)+fmt.Sprint(90+i))
			}
			aside, _ := filepath.Glob(filepath.Join(dir, "quarantine", "*.json"))
			if len(aside) == 0 && c.name != "empty" {
				t.Error("nothing lies in quarantine")
			}
		})
	}
}
