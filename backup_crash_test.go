package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// rig is a disk that loses power, and processes that die at an operation.
type rig struct {
	disk  *crash.Disk
	clock time.Time
	ops   int
	dieAt int  // 0: never
	plain bool // there is no barrier: every file has to be synced
	err   error
}

func (r *rig) options(seed byte) *Options {
	view := r.disk.Process("p")
	r.disk.SetClock(func() time.Time { return r.clock })
	fsys := wrap.New(view, func(op *wrap.Op, call func() error) error {
		r.clock = r.clock.Add(10 * time.Microsecond)
		if r.plain && op.Kind == wrap.OpenBarrier {
			return errors.ErrUnsupported
		}
		if r.ops++; r.ops == r.dieAt {
			if r.err != nil {
				switch op.Kind {
				case wrap.Load, wrap.Store, wrap.CompareAndSwap, wrap.Unlock, wrap.Unlease, wrap.Close:
					return call() // these do not fail
				case wrap.Sync, wrap.Datasync, wrap.Barrier:
					return op.FailSync(r.err)
				}
				return fmt.Errorf("%s %s: %w", op.Kind, op.Path, r.err)
			}
			r.disk.Kill(view)
			runtime.Goexit()
		}
		return call()
	})
	return storetest.In(&Options{
		Clock: func() time.Time { return r.clock }, SegmentSize: 64 << 10, NoBackground: true, CacheBytes: -1,
	}, storetest.Environment{System: vfs.System{FS: fsys, Inline: true, Rand: rand.NewChaCha8([32]byte{seed}), Sleep: func(ctx context.Context, d time.Duration) error {
		r.clock = r.clock.Add(d)
		return ctx.Err()
	}}})
}

// lose is the disk after a loss of power.
func (r *rig) lose(p crash.Pattern, seed uint64) *rig {
	return &rig{disk: r.disk.Crash(p, rand.New(rand.NewPCG(seed, uint64(p)))), clock: r.clock.Add(time.Second), plain: r.plain}
}

// alone runs f where a simulated death ends a goroutine.
func alone(f func() error) (err error, died bool) {
	done := make(chan struct{})
	died = true
	go func() {
		defer close(done)
		err = f()
		died = false
	}()
	<-done
	return err, died
}

// cuts runs job until it ends by itself, killing it, or failing it, at every
// operation; after each it lets the power go in several ways and asks check.
func cuts(t *testing.T, prepare func(t *testing.T) *rig, fault error, job func(r *rig) error, check func(t *testing.T, r *rig, done bool)) {
	proofs.OneGoroutine(t)
	patterns := []crash.Pattern{crash.KeepAll, crash.LoseAll, crash.KeepRandom, crash.KeepNames}
	begin, step := 1, 13 // VARVE_STEP=1 go test . -run 'BackupCut|RestoreCut' cuts everywhere: a minute and a half
	if !proofs.Long() {
		step = proofs.Every(61)
	}
	if s := os.Getenv("VARVE_CUT"); s != "" { // this one and the rest
		var err error
		if begin, err = strconv.Atoi(s); err != nil || begin < 1 {
			t.Fatal("VARVE_CUT is no operation", s)
		}
	}
	if s := os.Getenv("VARVE_STEP"); s != "" {
		var err error
		if step, err = strconv.Atoi(s); err != nil || step < 1 {
			t.Fatal("VARVE_STEP is no step", s)
		}
	}
	n, last := 0, false
	for at := begin; !last; at += step {
		r := prepare(t)
		r.ops, r.dieAt, r.err = 0, at, fault
		err, died := alone(func() error { return job(r) })
		last = r.ops < at
		if last && (err != nil || died) {
			t.Fatalf("without a cut: %v, %v", err, died)
		}
		if fault != nil && err != nil && !errors.Is(err, fault) && !errors.Is(err, ErrSyncFailed) && !errors.Is(err, ErrDiskFull) {
			t.Fatalf("operation %d: the error cannot be told: %v", at, err)
		}
		n++
		r.dieAt = 0
		some := patterns[at%len(patterns):][:1]
		if last {
			some = crash.Patterns() // it was called done
		}
		for _, p := range some {
			check(t, r.lose(p, uint64(at)), err == nil && !died)
			if t.Failed() {
				t.Fatalf("operation %d, %v: VARVE_CUT=%d", at, p, at)
			}
		}
	}
	t.Logf("%d cuts", n)
}

// whole is a store with a few memories in files, log and archive.
func whole(t *testing.T) (*rig, map[string]string) {
	t.Helper()
	ctx := context.Background()
	r := &rig{disk: crash.New(), clock: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	st, err := Open(ctx, "/s", r.options(1))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i := range 8 {
		id, c := fmt.Sprint("k", i%6), fmt.Sprint(i, strings.Repeat("x", 200*i))
		if _, err := st.Put(ctx, Memory{ID: id, Content: c}); err != nil {
			t.Fatal(err)
		}
		want[id] = c
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return r, want
}

func missing(fsys vfs.FS, name string) bool {
	_, err := fsys.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// Wherever a backup is killed, or an operation of it fails, and whatever the loss of
// power leaves: a folder that has its name is a whole backup, one that was called done
// is there, the store has lost nothing, and the next backup of that name succeeds.
func TestBackupCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected"), "plain": nil} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var want map[string]string
			cuts(t, func(t *testing.T) (r *rig) {
				r, want = whole(t)
				r.plain = what == "plain"
				return r
			}, fault, func(r *rig) error {
				st, err := Open(ctx, "/s", r.options(2))
				if err != nil {
					return err
				}
				_, err = st.Backup(ctx, "/b", BackupOptions{})
				return errors.Join(err, st.Close())
			}, func(t *testing.T, r *rig, done bool) {
				o := r.options(3)
				fsys := storetest.Of(o).System.FS
				if missing(fsys, "/b") {
					if done {
						t.Error("a backup that was called done is gone")
					}
				} else if info, err := backup.Check(ctx, fsys, "/b", nil); err != nil || info.Memories != int64(len(want)) {
					t.Errorf("a folder that is no whole backup: %+v, %v", info, err)
				}
				st, err := Open(ctx, "/s", o)
				if err != nil {
					t.Fatal(err)
				}
				if got := said(t, st); !maps.Equal(got, want) {
					t.Errorf("the store has %v", got)
				}
				next := "/b"
				if !missing(fsys, "/b") {
					next = "/c"
				}
				if _, err := st.Backup(ctx, next, BackupOptions{}); err != nil {
					t.Errorf("the next backup: %v", err)
				} else if _, err := backup.Check(ctx, fsys, next, nil); err != nil {
					t.Errorf("the next backup: %v", err)
				}
				noLeftovers(t, fsys, "/b")
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The same of a restore: what has the name is a whole store.
func TestRestoreCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected"), "plain": nil} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var want map[string]string
			prepare := func(t *testing.T) (r *rig) {
				r, want = whole(t)
				r.plain = what == "plain"
				st, err := Open(ctx, "/s", r.options(2))
				if err == nil {
					_, err = st.Backup(ctx, "/b", BackupOptions{})
					err = errors.Join(err, st.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			cuts(t, prepare, fault, func(r *rig) error {
				_, err := Restore(ctx, "/b", "/r", &RestoreOptions{Options: r.options(4)})
				return err
			}, func(t *testing.T, r *rig, done bool) {
				o := r.options(5)
				fsys, next := storetest.Of(o).System.FS, "/r"
				if !missing(fsys, "/r") {
					next = "/q"
				} else if done {
					t.Error("a store that was called restored is gone")
				}
				if _, err := Restore(ctx, "/b", next, &RestoreOptions{Options: o}); err != nil {
					t.Fatalf("the next restore: %v", err)
				}
				noLeftovers(t, fsys, "/r")
				o.MustExist = true
				st, err := Open(ctx, "/r", o)
				if err != nil {
					t.Fatal(err)
				}
				if got := said(t, st); !maps.Equal(got, want) {
					t.Errorf("the restored store has %v", got)
				}
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// noLeftovers wants nothing of unfinished folders beside one that was made by now, and no mark in it.
func noLeftovers(t *testing.T, fsys vfs.FS, made string) {
	t.Helper()
	names, err := fsys.ReadDir("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Contains(name, ".partial") {
			t.Errorf("/%s is left, of %v", name, names)
		}
	}
	if !missing(fsys, made+"/"+vfs.MarkName) {
		t.Errorf("%s has a mark", made)
	}
}

func said(t *testing.T, st *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for id, m := range contents(t, st) {
		all[id] = m.Content
	}
	return all
}
