package scopes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/working"
)

var workScope = working.Scope{Project: "p", Session: "s"}

const workFile = "working/project-p-session-s~"

// wm opens the working memory of workScope.
func wm(t testing.TB, st *varve.Store) *working.Memory {
	t.Helper()
	m, err := st.Working().Open(t.Context(), workScope, &working.Options{MaxNotes: working.Unlimited})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func hasValue(t testing.TB, m *working.Memory, key string, want any) {
	t.Helper()
	v, found, err := m.Get(t.Context(), key)
	if err != nil || !found || v != want {
		t.Fatalf("%s: %.60v, %v, %v; want %.60v", key, v, found, err, want)
	}
}

// scopeFile returns the only file in working/.
func scopeFile(t testing.TB, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "working", "*.json"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files in working/: %v, %v", names, err)
	}
	return names[0]
}

func verifyClean(t testing.TB, st *varve.Store) {
	t.Helper()
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Severity != varve.SeverityInfo {
			t.Errorf("verify: %+v", f)
		}
	}
}

// TestWorkingAgain: what was written is there after a close, with and without flushes in between, and
// every round leaves one readable file for each scope.
func TestWorkingAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
		fixture.Must(t, err)
		return st
	}
	for round := range 5 {
		st := open()
		m := wm(t, st)
		if round > 0 {
			hasValue(t, m, "round", float64(round-1))
			hasValue(t, m, "n", float64(round*20))
		}
		for i := range 20 {
			_, err := m.Increment(t.Context(), "n", 1)
			fixture.Must(t, err)
			_, err = m.Append(t.Context(), strings.Repeat("x", 2000))
			fixture.Must(t, err)
			if i%7 == 3 {
				fixture.Must(t, st.Flush(t.Context()))
			}
		}
		fixture.Must(t, m.Set(t.Context(), "round", round))
		if round%2 == 0 {
			fixture.Must(t, st.Admin().Compact(t.Context()))
		}
		verifyClean(t, st)
		fixture.Must(t, st.Close())
		text, err := os.ReadFile(scopeFile(t, dir))
		fixture.Must(t, err)
		if f, err := working.DecodeFile(text); err != nil || !f.Intact || f.Scope != workScope {
			t.Fatalf("%+v, %v", f, err)
		}
	}
	st := open()
	defer st.Close()
	notes, err := wm(t, st).Notes(t.Context(), -1)
	fixture.Must(t, err)
	if len(notes) != 100 {
		t.Errorf("%d entries", len(notes))
	}
	verifyClean(t, st)
}

// TestWorkingDropped: a scope that is dropped leaves no file, and a later one of its name shares nothing
// with it, not even a version.
func TestWorkingDropped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	defer st.Close()
	for i := range 3 {
		m := wm(t, st)
		fixture.Must(t, m.Set(t.Context(), "k", i))
		before, _, err := m.Entry(t.Context(), "k")
		fixture.Must(t, err)
		if i > 0 {
			fixture.Must(t, st.Flush(t.Context()))
			scopeFile(t, dir)
		}
		dropped, err := m.Drop(t.Context())
		fixture.Must(t, err)
		if !dropped {
			t.Error("there was nothing to drop")
		}
		if i < 2 {
			fixture.Must(t, st.Flush(t.Context()))
			if names, _ := filepath.Glob(filepath.Join(dir, "working", "*")); len(names) > 0 {
				t.Errorf("left: %v", names)
			}
		}
		if _, found, _ := m.Get(t.Context(), "k"); found {
			t.Error("it is still there")
		}
		fixture.Must(t, m.Set(t.Context(), "k", "again"))
		after, _, err := m.Entry(t.Context(), "k")
		fixture.Must(t, err)
		if after.Version <= before.Version {
			t.Errorf("version %d after %d", after.Version, before.Version)
		}
		_, err = m.Drop(t.Context())
		fixture.Must(t, err)
	}
	verifyClean(t, st)
}

// TestWorkingEdited: every process adopts an edit of the file by hand, unless there is a newer state; an
// edit that cannot be read is an error that names the file, and the scope can be dropped.
func TestWorkingEdited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
		fixture.Must(t, err)
		return st
	}
	st := open()
	m := wm(t, st)
	fixture.Must(t, m.Set(t.Context(), "k", "as it was"))
	_, err := m.Checkpoint(t.Context(), "")
	fixture.Must(t, err)
	fixture.Must(t, st.Close())
	edit(t, dir, `"value": "as it was"`, `"value": "as I want it"`)

	st = open()
	defer st.Close()
	other := open()
	defer other.Close()
	hasValue(t, wm(t, st), "k", "as I want it")
	hasValue(t, wm(t, other), "k", "as I want it")
	fixture.Must(t, wm(t, other).Set(t.Context(), "l", 1))
	hasValue(t, wm(t, st), "l", 1.0)
	hasValue(t, wm(t, st), "k", "as I want it")
	list, err := wm(t, st).Checkpoints(t.Context())
	fixture.Must(t, err)
	_, err = wm(t, st).Restore(t.Context(), list[0].ID)
	fixture.Must(t, err)
	hasValue(t, wm(t, st), "k", "as it was")
	fixture.Must(t, st.Flush(t.Context()))

	// While a process has it in memory and writes: the edit is set aside.
	fixture.Must(t, wm(t, st).Set(t.Context(), "k", "newer"))
	edit(t, dir, `"value": "as it was"`, `"value": "edited"`)
	fixture.Must(t, st.Flush(t.Context()))
	hasValue(t, wm(t, st), "k", "newer")
	aside, err := filepath.Glob(filepath.Join(dir, "quarantine", "*session-s*"))
	fixture.Must(t, err)
	if len(aside) != 2 { // with its note
		t.Errorf("in quarantine: %v", aside)
	}
	fixture.Must(t, other.Close())
	fixture.Must(t, st.Close())

	fixture.Must(t, os.WriteFile(scopeFile(t, dir), []byte("{ no JSON"), 0o600))
	st = open()
	defer st.Close()
	fine, err := st.Working().Open(t.Context(), working.Scope{Session: "fine"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, fine.Set(t.Context(), "k", 1))
	listed, wrong := 0, 0
	for _, err := range st.Working().Home().Scopes(t.Context()) {
		if err != nil {
			wrong++
		} else {
			listed++
		}
	}
	if listed != 1 || wrong != 1 {
		t.Errorf("%d scopes listed, %d told to be damaged", listed, wrong)
	}
	_, err = fine.Drop(t.Context())
	fixture.Must(t, err)
	_, err = st.Working().Open(t.Context(), workScope, nil)
	if err == nil || !strings.Contains(err.Error(), workFile) {
		t.Fatalf("a file that is no document: %v", err)
	}
	_, err = st.Working().Home().Do(context.Background(), &working.Request{Scope: workScope, Op: working.OpDrop{}})
	fixture.Must(t, err)
	m = wm(t, st)
	fixture.Must(t, m.Set(t.Context(), "k", "new"))
	hasValue(t, m, "k", "new")
	fixture.Must(t, st.Flush(t.Context()))
	hasValue(t, m, "k", "new")
}

// TestWorkingTwo: two processes, of which one lags while the other writes, flushes and releases the log.
func TestWorkingTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *varve.Store {
		st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
		fixture.Must(t, err)
		t.Cleanup(func() { fixture.Must(t, st.Close()) })
		return st
	}
	a, b := open(), open()
	ma, mb := wm(t, a), wm(t, b)
	for i := range 10 {
		hasN := float64(i * 40)
		if i > 0 {
			hasValue(t, mb, "n", hasN)
			hasValue(t, mb, "last", fmt.Sprint(i-1))
		}
		for j := range 40 {
			_, err := ma.Increment(t.Context(), "n", 1)
			fixture.Must(t, err)
			fixture.Must(t, ma.Set(t.Context(), fmt.Sprint("k", j), strings.Repeat("y", 3000)))
			if j%9 == 0 {
				fixture.Must(t, a.Admin().Compact(t.Context()))
			}
		}
		fixture.Must(t, ma.Set(t.Context(), "last", fmt.Sprint(i)))
		if i%3 == 0 { // and the other way round
			_, err := mb.Increment(t.Context(), "n", -1)
			fixture.Must(t, err)
			_, err = ma.Increment(t.Context(), "n", 1)
			fixture.Must(t, err)
		}
		if i%4 == 1 {
			fixture.Must(t, a.Admin().Compact(t.Context()))
		}
	}
	hasValue(t, mb, "n", 400.0)
	verifyClean(t, b)
}
