package fuzz

import (
	"path/filepath"
	"runtime"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/repair"
)

// A reader that replayed the log by itself, before any process recovered it after a loss of power, does
// not follow the log during that recovery. Entries that were written meanwhile are in the log and not in
// this reader's state, which verify does not treat as damage: neither a new memory nor a newer version.
func TestVerifyBesideRecovery(t *testing.T) {
	t.Parallel()
	m := newMachine()
	open := func(name string, readOnly bool) *varve.Store {
		_, o := m.process(name)
		o.ReadOnly = readOnly
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			t.Error(err)
			runtime.Goexit()
		}
		return st
	}
	apart := func(work func()) { // work may end by being killed
		done := make(chan struct{})
		go func() {
			defer close(done)
			work()
		}()
		<-done
	}
	put := func(st *varve.Store, id string) {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "of " + id}); err != nil {
			t.Error(err)
		}
	}
	apart(func() {
		st := open("before", false)
		put(st, "old")
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	m = m.future(crash.KeepAll, 1)
	reader := open("reader", true)
	apart(func() {
		st := open("writer", false)
		put(st, "new")
		put(st, "old")
		m.disk.Kill(m.views["writer"])
	})
	gone := false
	m.hook = func(view *crash.Process, op *wrap.Op) {
		if view != m.views["recovery"] || op.Kind != wrap.Store || op.Path != filepath.Join(dir, "wal", "shared") {
			return
		}
		if gone { // the page was abandoned, and is not created again yet
			m.disk.Kill(view)
			runtime.Goexit()
		}
		gone = op.Word == 3 && op.Value == 0
	}
	apart(func() { open("recovery", false) })
	if m.hook = nil; !gone {
		t.Fatal("nobody recovered the log")
	}
	var sum repair.Summary
	for f, err := range reader.Admin().Verify(ctx, varve.VerifyOptions{Summary: &sum}) {
		if err != nil || f.Severity > varve.SeverityInfo {
			t.Error(f, err)
		}
	}
	if sum.Entries < 3 {
		t.Errorf("verify read %d entries of the log, of 3", sum.Entries)
	}
	open("after", false)
	for f, err := range reader.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity > varve.SeverityInfo {
			t.Error(f, err)
		}
	}
	if _, err := reader.Get(ctx, "new"); err != nil {
		t.Error(err)
	}
}
