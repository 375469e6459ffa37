package repairs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

const bothFeatures = wal.FeatureTestWrite | wal.FeatureTestRead

// knowing returns the options of a build that knows features.
func knowing(f wal.Features) *varve.Options {
	return storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{Features: uint64(f)},
		Views: []views.Maker{}})
}

func mustRaise(t testing.TB, st *varve.Store, f wal.Features) {
	t.Helper()
	if err := storetest.Inner(st).Engine.Log().Raise(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

// raised makes a store with a memory and features.
func raised(t *testing.T, f wal.Features) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "storage")
	st, err := varve.Open(context.Background(), dir, knowing(bothFeatures))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(context.Background(), varve.Memory{ID: "a", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	mustRaise(t, st, f)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hasFeatures opens a store and compares its features.
func hasFeatures(t *testing.T, dir string, want wal.Features) {
	t.Helper()
	st, err := varve.Open(context.Background(), dir, knowing(bothFeatures))
	if err != nil {
		t.Fatal(err)
	}
	if got := storetest.Inner(st).Engine.Log().Features(); got != want {
		t.Errorf("%s has features %s, want %s", dir, got, want)
	}
	if _, err := st.Get(context.Background(), "a"); err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// attached is a child that has a store open and does not know the test features, until its input ends;
// raising is a child that sets a feature as soon as it is told to.
func attached(ctx context.Context, _, dir string) error {
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, _ = os.Stdin.Read(make([]byte, 1))
	return st.Close()
}

func raising(ctx context.Context, _, dir string) error {
	st, err := varve.Open(ctx, dir, knowing(bothFeatures))
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, _ = os.Stdin.Read(make([]byte, 1))
	if err := storetest.Inner(st).Engine.Log().Raise(ctx, wal.FeatureTestWrite); err != nil {
		return err
	}
	fmt.Println("raised")
	select {}
}

// Setting a feature waits for a process that lacks it, and names that process; it does not wait for one
// that was killed.
func TestFeaturesRaiseBesideProcess(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		dir := t.TempDir()
		o := knowing(bothFeatures)
		o.LockWait = 300 * time.Millisecond
		st := fixture.Open(t, dir, o)
		cmd, out, in := storetest.StartTalking(t, "attached", dir)
		if line, err := out.ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
		var locked *varve.LockError
		err := storetest.Inner(st).Engine.Log().Raise(context.Background(), wal.FeatureTestWrite)
		if !errors.As(err, &locked) || locked.Holder.PID != cmd.Process.Pid ||
			!strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
			t.Fatalf("raised beside process %d, which lacks the feature: %v", cmd.Process.Pid, err)
		}
		if killed {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
		} else {
			go func() {
				time.Sleep(100 * time.Millisecond) // the raise has begun to wait; nothing depends on it
				_ = in.Close()
			}()
			defer func() { _ = cmd.Wait() }()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		for {
			if err = storetest.Inner(st).Engine.Log().Raise(ctx, wal.FeatureTestWrite); !errors.Is(err, varve.ErrLocked) ||
				ctx.Err() != nil {
				break
			}
		}
		cancel()
		if err != nil {
			t.Fatalf("killed %v: raised when it is gone: %v", killed, err)
		}
		if _, err := varve.Open(context.Background(), dir, nil); !errors.Is(err, varve.ErrNewerFormat) {
			t.Fatalf("opened by a build that lacks the feature: %v", err)
		}
		ro := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
		if _, err := ro.Count(context.Background()); err != nil {
			t.Errorf("reading without knowing a writer feature: %v", err)
		}
	}
}

// A process that is killed while it sets a feature leaves a store with or without the feature; if it has
// reported success, with it.
func TestFeaturesRaiserKilled(t *testing.T) {
	t.Parallel()
	for i := range storetest.Repeat(t, 10) {
		dir := t.TempDir()
		cmd, out, in := storetest.StartTalking(t, "raising", dir)
		if line, err := out.ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
		fmt.Fprintln(in, "go on")
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		line, _ := out.ReadString('\n')
		_ = cmd.Wait()
		older, err := varve.Open(context.Background(), dir, nil)
		if err == nil {
			err = older.Close()
		} else if !errors.Is(err, varve.ErrNewerFormat) {
			t.Fatal(err)
		}
		st := fixture.Open(t, dir, knowing(bothFeatures))
		got := storetest.Inner(st).Engine.Log().Features()
		if got != 0 && err == nil || got == 0 && err != nil ||
			strings.TrimSpace(line) == "raised" && got != wal.FeatureTestWrite {
			t.Fatalf("round %d: it said %q; a build that lacks the feature: %v; features %s", i, line, err, got)
		}
	}
}

// Backup, restore, migration and repair keep the features, and a build that lacks one refuses all of
// these.
func TestFeaturesAreKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	lacks := func(t *testing.T, what string, err error) {
		t.Helper()
		if !errors.Is(err, varve.ErrNewerFormat) {
			t.Errorf("%s by a build that lacks the feature: %v", what, err)
		}
	}
	t.Run("backup", func(t *testing.T) {
		dir, backup := raised(t, wal.FeatureTestWrite), filepath.Join(t.TempDir(), "backup")
		st := fixture.Open(t, dir, knowing(bothFeatures))
		info, err := st.Backup(ctx, backup, varve.BackupOptions{})
		if err != nil || info.Format != 3 || info.Features != "0000000080000000" {
			t.Fatalf("%+v, %v", info, err)
		}
		to := filepath.Join(t.TempDir(), "restored")
		_, err = varve.Restore(ctx, backup, to, nil)
		lacks(t, "restored", err)
		if _, err := os.Stat(to); err == nil {
			t.Error("something was restored")
		}
		if _, err := varve.Restore(ctx, backup, to, &varve.RestoreOptions{Options: knowing(bothFeatures)}); err != nil {
			t.Fatal(err)
		}
		_, err = varve.Open(ctx, to, nil)
		lacks(t, "opened", err)
		hasFeatures(t, to, wal.FeatureTestWrite)
	})
	t.Run("backup before", func(t *testing.T) {
		dir, backup := raised(t, 0), filepath.Join(t.TempDir(), "backup")
		st := fixture.Open(t, dir, knowing(bothFeatures))
		if info, err := st.Backup(ctx, backup, varve.BackupOptions{}); err != nil || info.Format != 1 || info.Features != "" {
			t.Fatalf("%+v, %v", info, err)
		}
		mustRaise(t, st, wal.FeatureTestRead)
		to := filepath.Join(t.TempDir(), "restored")
		if _, err := varve.Restore(ctx, backup, to,
			&varve.RestoreOptions{Log: dir, Options: knowing(bothFeatures)}); err != nil {
			t.Fatal(err)
		}
		hasFeatures(t, to, wal.FeatureTestRead) // its log continues in that of the living store
	})
	t.Run("migrate", func(t *testing.T) {
		dir, to := raised(t, wal.FeatureTestWrite), filepath.Join(t.TempDir(), "to")
		_, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true})
		lacks(t, "moved", err)
		if _, err := varve.Migrate(ctx, dir, to,
			&varve.MigrateOptions{Switch: true, Options: knowing(bothFeatures)}); err != nil {
			t.Fatal(err)
		}
		_, err = varve.Open(ctx, to, nil)
		lacks(t, "opened", err)
		hasFeatures(t, to, wal.FeatureTestWrite)
	})
	for name, spoil := range map[string]func(*testing.T, string) error{
		"slot": func(t *testing.T, dir string) error {
			c, err := wal.ReadCheckpoint(vfs.OS(), dir)
			storetest.Rewrite(t, filepath.Join(dir, "checkpoint"), func(b []byte) []byte {
				b[c.Sequence%2*4096+144] ^= 1
				return b
			})
			return err
		},
		"both slots": func(t *testing.T, dir string) error {
			storetest.Rewrite(t, filepath.Join(dir, "checkpoint"), func(b []byte) []byte {
				b[16] ^= 1
				b[4096+16] ^= 1
				return b
			})
			return nil
		},
		"log": func(t *testing.T, dir string) error {
			storetest.Rewrite(t, filepath.Join(dir, "wal", "00000001.wal"), func(b []byte) []byte {
				b[200] ^= 1
				return b
			})
			return nil
		},
	} {
		t.Run("repair "+name, func(t *testing.T) {
			dir := raised(t, wal.FeatureTestWrite)
			if err := spoil(t, dir); err != nil {
				t.Fatal(err)
			}
			plan, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			before := fixture.Snapshot(t, filepath.Join(dir, "wal"))
			_, err = plan.Apply(ctx)
			lacks(t, "repaired", err)
			for name, was := range fixture.Snapshot(t, filepath.Join(dir, "wal")) {
				if before[name] != was {
					t.Errorf("%s was changed", name)
				}
			}
			plan, err = varve.PlanRepair(ctx, dir, knowing(bothFeatures), varve.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := plan.Apply(ctx); err != nil {
				t.Fatal(err)
			}
			_, err = varve.Open(ctx, dir, nil)
			lacks(t, "opened", err)
			hasFeatures(t, dir, wal.FeatureTestWrite)
			plan, err = varve.PlanRepair(ctx, dir, knowing(bothFeatures), varve.VerifyOptions{})
			if err != nil || plan.Summary.Worst > repair.Info {
				t.Errorf("not sound after the repair: %+v, %v", plan.Summary, err)
			}
		})
	}
}

// The error names all features that are lacked, and does not advise to read if reading does not work
// either.
func TestFeatureErrorSaysAll(t *testing.T) {
	t.Parallel()
	_, err := varve.Open(context.Background(), raised(t, bothFeatures), nil)
	var lacks *errs.FeatureError
	if !errors.As(err, &lacks) || fmt.Sprint(lacks.Lacks) != "[test-write test-read]" || lacks.Readable ||
		strings.Contains(err.Error(), "reading works") {
		t.Fatalf("%+v, %v", lacks, err)
	}
}
