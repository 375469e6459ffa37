package backups

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

func missing(fsys vfs.FS, name string) bool {
	_, err := fsys.Stat(name)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// At whatever operation a backup is killed or fails, and whatever the loss of power leaves: a folder
// that has its final name is a complete backup, one that was acknowledged exists, the store has lost
// nothing, and the next backup of that name succeeds.
func TestBackupCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected"), "plain": nil,
		"packed, killed": nil, "packed, error": errors.New("injected")} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var want map[string]string
			form := varve.BackupOptions{Packed: strings.HasPrefix(what, "packed")}
			fixture.CutAtEach(t, func(t *testing.T) (r *fixture.Rig) {
				r, want = fixture.Filled(t)
				r.Plain = what == "plain"
				return r
			}, fault, func(r *fixture.Rig) error {
				st, err := varve.Open(ctx, "/s", r.Options(2))
				if err != nil {
					return err
				}
				_, err = st.Backup(ctx, "/b", form)
				return errors.Join(err, st.Close())
			}, func(t *testing.T, r *fixture.Rig, done bool) {
				o := r.Options(3)
				fsys := storetest.Of(o).System.FS
				if missing(fsys, "/b") {
					if done {
						t.Error("a backup that was called done is gone")
					}
				} else if info, err := backup.Check(ctx, fsys, "/b", nil, nil); err != nil || info.Memories != int64(len(want)) {
					t.Errorf("not a whole backup: %+v, %v", info, err)
				}
				st, err := varve.Open(ctx, "/s", o)
				if err != nil {
					t.Fatal(err)
				}
				if got := fixture.ContentsOf(t, st); !maps.Equal(got, want) {
					t.Errorf("the store has %v", got)
				}
				next := "/b"
				if !missing(fsys, "/b") {
					next = "/c"
				}
				if _, err := st.Backup(ctx, next, form); err != nil {
					t.Errorf("the next backup: %v", err)
				} else if _, err := backup.Check(ctx, fsys, next, nil, nil); err != nil {
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

// The same for a restore: a folder that has its final name is a complete store.
func TestRestoreCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected"), "plain": nil,
		"packed, killed": nil} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var want map[string]string
			prepare := func(t *testing.T) (r *fixture.Rig) {
				r, want = fixture.Filled(t)
				r.Plain = what == "plain"
				st, err := varve.Open(ctx, "/s", r.Options(2))
				if err == nil {
					_, err = st.Backup(ctx, "/b", varve.BackupOptions{Packed: strings.HasPrefix(what, "packed")})
					err = errors.Join(err, st.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			fixture.CutAtEach(t, prepare, fault, func(r *fixture.Rig) error {
				_, err := varve.Restore(ctx, "/b", "/r", &varve.RestoreOptions{Options: r.Options(4)})
				return err
			}, func(t *testing.T, r *fixture.Rig, done bool) {
				o := r.Options(5)
				fsys, next := storetest.Of(o).System.FS, "/r"
				if !missing(fsys, "/r") {
					next = "/q"
				} else if done {
					t.Error("a store that was called restored is gone")
				}
				if _, err := varve.Restore(ctx, "/b", next, &varve.RestoreOptions{Options: o}); err != nil {
					t.Fatalf("the next restore: %v", err)
				}
				noLeftovers(t, fsys, "/r")
				o.MustExist = true
				st, err := varve.Open(ctx, "/r", o)
				if err != nil {
					t.Fatal(err)
				}
				if got := fixture.ContentsOf(t, st); !maps.Equal(got, want) {
					t.Errorf("the restored store has %v", got)
				}
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// noLeftovers fails the test if unfinished folders are beside a folder that was completed, or a mark is
// in it.
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
