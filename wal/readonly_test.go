package wal

import (
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A recovery clears the page's marks and sets them again. A reader that is not attached must use the previous
// marks meanwhile: verify reported every segment below them as missing.
func TestMarksWhileOthersRecover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("m1", "v"))
	to := l.AppliedMark()
	held := mustHold(t, l)
	if err := l.SetCheckpoint(held, to, to, [Folders]int64{}); err != nil {
		t.Fatal(err)
	}
	held.Unlock()
	ro, _ := open(t, dir, func(o *Options) { o.ReadOnly = true })
	defer ro.Close()
	flushed, spilled := ro.Flushed(), ro.Spilled()
	if flushed != to.LSN || spilled != to.LSN {
		t.Fatalf("the marks are %d and %d, not %d", flushed, spilled, to.LSN)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	looked := 0
	l, _ = open(t, dir, func(o *Options) {
		o.FS = wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if op.Kind == wrap.Store {
				looked++
				if f, s := ro.Flushed(), ro.Spilled(); f != flushed || s != spilled {
					t.Errorf("flushed is %d, spilled %d; they were %d and %d", f, s, flushed, spilled)
				}
				if b := ro.Backlog(); b != 0 {
					t.Errorf("the backlog is %d bytes", b)
				}
			}
			return call()
		})
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if looked < 10 {
		t.Errorf("looked %d times only", looked)
	}
}

// A reader that is not attached does not keep other processes from recovering the log. So it reads nothing that
// is not durable: a recovery may cut it, and others write there.
func TestReadOnlyReadsWhatIsDurable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	ro, _ := open(t, dir, func(o *Options) { o.ReadOnly = true })
	defer ro.Close()
	mustAppend(t, l, put("m1", "durable"))
	r, err := l.request(put("m2", "written"))
	if err != nil {
		t.Fatal(err)
	}
	if lead, err := l.q.add(r); err != nil || !lead {
		t.Fatal(lead, err)
	}
	if _, err := l.write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := ro.CatchUp(t.Context()); err != nil || ro.Applied() != l.Durable() || ro.shared.Tail() == l.Durable() {
		t.Fatal(err, ro.Applied(), ro.shared.Tail())
	}
	if w := &ro.state.w; w.ReadTo() > l.Durable() {
		t.Errorf("has read up to %d, durable is %d", w.ReadTo(), l.Durable())
	}
	l.settle(t.Context(), r)
	l.q.pass()
	if err := ro.CatchUp(t.Context()); err != nil || ro.Applied() != l.shared.Tail() {
		t.Error(err, ro.Applied(), l.shared.Tail())
	}
}
