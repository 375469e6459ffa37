package purges

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// hosted is the file system of a process that others can distinguish from theirs, and whose process they
// can see to be alive or not.
type hosted struct {
	vfs.FS
	pid   int
	birth uint64
}

func (h hosted) Host() vfs.Host {
	host := h.FS.Host()
	host.PID, host.Birth = h.pid, h.birth
	return host
}

func of(o *varve.Options, pid int, birth uint64) *varve.Options {
	e := *storetest.Of(o)
	e.System.FS = hosted{e.System.FS, pid, birth}
	return storetest.In(&varve.Options{Clock: o.Clock, SegmentSize: o.SegmentSize, NoBackground: true, CacheBytes: -1}, e)
}

// What a killed purge leaves is overwritten by the next process, even after another purge there was
// canceled before it began.
func TestPurgeKilledBeside(t *testing.T) {
	proofs.OneGoroutine(t)
	ctx := context.Background()
	own := vfs.OS().Host()
	if own.Birth == 0 {
		t.Skip("processes cannot be told apart here: mount the /proc of this namespace")
	}
	step := 7
	if !proofs.Long() && os.Getenv("VARVE_STEP") == "" {
		step = proofs.Every(29)
	}
	s := toldSecrets("secret")
	for _, given := range []bool{false, true} {
		for at, died := 1, true; died; at += step {
			r := &fixture.Rig{Disk: crash.New()}
			one, err := varve.Open(ctx, "/s", of(r.Options(2), 1<<22+9, own.Birth>>32<<32|5)) // of a process that has ended
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range []string{"a", "secret", "b"} {
				if _, err := one.Put(ctx,
					varve.Memory{ID: id, Content: []string{"x", strings.Repeat(told, 20), "y"}[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if err := one.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			later := &fixture.Rig{Disk: r.Disk, Clock: r.Clock}
			two, err := varve.Open(ctx, "/s", of(later.Options(3), own.PID, own.Birth))
			if err != nil {
				t.Fatal(err)
			}
			r.Disk.KeepFreed()
			r.Ops, r.DieAt = 0, at
			if err, died = fixture.UntilKilled(func() error {
				_,
					err := one.Admin().Purge(ctx, "secret")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if given {
				ended, end := context.WithCancel(ctx)
				end()
				if _, err := two.Admin().Purge(ended, "b"); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			for i := range 3 {
				_, err := two.Put(ctx, varve.Memory{ID: "a", Content: fmt.Sprint("x", i)})
				if err = errors.Join(err, two.Flush(ctx)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := two.Admin().Purge(ctx, "secret"); err != nil && !errors.Is(err, varve.ErrNotFound) {
				t.Error(err)
			}
			if err := two.Close(); err != nil {
				t.Error(err)
			}
			s.checkFreed(t, r.Disk, true)
			if left := s.traces(t, storetest.Of(later.Options(4)).System.FS, "/s"); len(left) > 0 {
				t.Error(left[0])
			}
			if t.Failed() {
				t.Fatalf("killed at operation %d; then one was given up: %v", at, given)
			}
			if !died {
				break
			}
		}
	}
}
