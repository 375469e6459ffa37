package fuzz

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// faultsOf returns the errors that an operation can have.
func faultsOf(op *wrap.Op) []error {
	half := func(err error) error { return &partly{short: true, err: err} }
	done := func(err error) error { return &partly{err: err} }
	switch op.Kind {
	case wrap.Create, wrap.Mkdir, wrap.OpenLock, wrap.OpenShared, wrap.CreateUnnamed:
		return []error{syscall.ENOSPC, syscall.EMFILE, syscall.EIO, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, done(syscall.EIO), syscall.EINTR}
	case wrap.Open, wrap.OpenDir:
		return []error{syscall.EMFILE, syscall.EIO, syscall.ENFILE, syscall.EACCES, syscall.EINTR}
	case wrap.Write:
		return []error{syscall.ENOSPC, syscall.EIO, half(syscall.ENOSPC), syscall.EDQUOT, half(io.ErrShortWrite), syscall.EROFS, done(syscall.EIO), syscall.EINTR}
	case wrap.Rename, wrap.RenameNew, wrap.Link, wrap.Exchange, wrap.LinkUnnamed:
		return []error{syscall.ENOSPC, syscall.EIO, done(syscall.EIO), syscall.EDQUOT, syscall.EROFS}
	case wrap.Sync, wrap.Datasync, wrap.SyncDir:
		return []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EINTR}
	case wrap.Truncate:
		return []error{syscall.ENOSPC, syscall.EIO, done(syscall.EIO)}
	case wrap.Read:
		return []error{syscall.EIO, half(syscall.EIO), syscall.EINTR}
	case wrap.Remove:
		return []error{syscall.EIO, done(syscall.EIO), syscall.EROFS, syscall.EACCES}
	case wrap.TryLock, wrap.Lock:
		return []error{syscall.EIO, syscall.ENOLCK}
	case wrap.Stat, wrap.ReadDir, wrap.SetMtime, wrap.SetMode, wrap.Lease, wrap.Map, wrap.Volume,
		wrap.OpenBarrier, wrap.Barrier:
		return []error{syscall.EIO, syscall.EACCES}
	}
	return nil
}

// typed reports whether a caller can act on the error. A full disk and a refusal have a sentinel each;
// all others wrap the system's error.
func typed(err, fault error) bool {
	if errors.Is(err, varve.ErrSyncFailed) || errors.Is(err, varve.ErrOutcomeUnknown) || errors.Is(err, varve.ErrClosed) || errors.Is(err, varve.ErrDiskFull) {
		return true
	}
	if !errors.Is(err, fault) {
		return false
	}
	switch {
	case errors.Is(fault, syscall.ENOSPC), errors.Is(fault, syscall.EDQUOT):
		return errors.Is(err, varve.ErrDiskFull)
	case errors.Is(fault, syscall.EROFS), errors.Is(fault, syscall.EACCES):
		return errors.Is(err, varve.ErrPermission) || errors.Is(err, varve.ErrReadOnly)
	}
	return true
}

// faulted is a workload in which one operation fails.
type faulted interface {
	work(m *machine, faulty bool) []error
	powerLost()
	check(fsys vfs.FS, o *varve.Options, deep bool) (wrong []string)
	bad(format string, args ...any)
}

// ofHistory is a workload with a history.
type ofHistory struct {
	*history
	script func(m *machine, h *history, faulty bool) []error
	always bool // check the vectors each time
}

func (f *ofHistory) work(m *machine, faulty bool) []error { return f.script(m, f.history, faulty) }

func (f *ofHistory) check(fsys vfs.FS, o *varve.Options, deep bool) []string {
	recovery(f.history, fsys, o, deep || f.always)
	return f.verdict()
}

// TestFaults makes each operation of the script fail once, with each error that it can have: no
// acknowledged write is lost, nothing panics, the errors are typed, and the store opens and works
// afterwards.
func TestFaults(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	injectFaults(t, 2, func() faulted { return &ofHistory{history: newHistory(), script: script} })
}

// TestFaultsVectors is TestFaults with vectors: bases, deltas, and the files of a spill.
func TestFaultsVectors(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	injectFaults(t, 5, func() faulted { return &ofHistory{history: newHistory(), script: scriptVectors, always: true} })
}

// TestFaultsGroups is TestFaults with assemblies, their members and merges: FAILURES 42 and 43.
func TestFaultsGroups(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	injectFaults(t, 3, func() faulted { return &ofGroups{newGrouper(nil, 1)} })
}

// injectFaults makes every step-th of the operations × errors of a workload fail.
func injectFaults(t *testing.T, step int, workload func() faulted) {
	type point struct {
		op  int
		err error
		at  string
	}
	var points []point
	count := newMachine()
	count.fault = func(op *wrap.Op) error {
		for i, err := range faultsOf(op) {
			// Two of the errors each time; all with -stride 1.
			if list := faultsOf(op); *stride == 0 && *cutFlag == 0 && i != count.ops%len(list) && i != (count.ops/len(list)+1)%len(list) {
				continue
			}
			points = append(points, point{count.ops, err, fmt.Sprint(op.Kind, " ", op.Path, " at ", count.sites.place(op).Site)})
		}
		return nil
	}
	if errs := workload().work(count, true); len(errs) > 0 { // the same operations as with a fault
		t.Fatal(errs)
	}
	step *= proofs.Every(150)
	if *stride > 0 {
		step = *stride
	}
	injected, told, failures := 0, 0, 0
	coverage := sim.Coverage{}
	for i := 0; i < len(points); i += step {
		p := points[i]
		if *cutFlag != 0 && *cutFlag != p.op {
			continue
		}
		injected++
		m, w := newMachine(), workload()
		m.coverage = coverage
		m.fault = func(op *wrap.Op) error {
			if m.ops == p.op {
				return p.err
			}
			return nil
		}
		// How the workload continues: in the same boot, or with a loss of power, at once or at the end:
		// then the data of a failed sync are lost.
		var errs []error
		ending := p.op % 4
		if ending == 3 {
			m.killAt = p.op + 25
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			errs = w.work(m, true)
		}()
		<-done
		m.fault, m.killAt = nil, 0
		if ending > 0 {
			m = m.future([]crash.Pattern{0, crash.LoseAll, crash.KeepRandom, crash.LoseAll}[ending], uint64(p.op))
			w.powerLost()
		}
		if len(errs) > 0 {
			told++
		}
		for _, err := range errs {
			if !typed(err, cause(p.err)) {
				w.bad("the error cannot be told: %v", err)
			}
		}
		fsys, o := m.process("after")
		if wrong := w.check(fsys, o, i%4 == 0); len(wrong) > 0 {
			failures++
			t.Errorf("operation %d (%s) failed with %v; errors %v:\n%s\n\tgo test ./fuzz -run %s$ -stride 1 -cut %d", p.op, p.at, p.err, errs, joinWrong(wrong), t.Name(), p.op)
			if failures > 20 {
				break
			}
		}
	}
	reach(coverage)
	t.Logf("%d operations × errors, %d injected, %d of them seen by the caller", len(points), injected, told)
}

// cause returns the system error in a fault.
func cause(err error) error {
	var part *partly
	if errors.As(err, &part) {
		return part.err
	}
	return err
}
