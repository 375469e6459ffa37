package backups

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// logHas reports whether an entry of log or archive has a text, compressed or not.
func logHas(t *testing.T, st *varve.Store, text string) bool {
	t.Helper()
	var codec record.Codec
	for e, err := range storetest.Inner(st).Engine.Log().Past().Entries(context.Background(), wal.Mark{LSN: 0},
		storetest.Inner(st).Engine.Log().Durable()) {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Key) == 0 {
			continue
		}
		view, err := record.Parse(e.Value)
		if err != nil {
			continue
		}
		doc, err := codec.Doc(&view, 1<<30)
		if err == nil && bytes.Contains(doc, []byte(text)) {
			return true
		}
	}
	return false
}

// TestCopyFirst tests the rule for all kinds: what a change replaces or deletes, while neither log nor
// archive has it, is in the log afterwards.
func TestCopyFirst(t *testing.T) {
	t.Parallel()
	scope := working.Scope{Session: "s"}
	type store struct {
		*varve.Store
		wm    *working.Memory
		later func(time.Duration) // moves the clocks
		mark  string              // the checkpoint
	}
	cases := []struct {
		name  string
		loses string // the text
		do    func(ctx context.Context, s *store) error
	}{
		{"memory/replace", "only copy m", func(ctx context.Context, s *store) error {
			_, err := s.Put(ctx, varve.Memory{ID: "m", Content: "another"})
			return err
		}},
		{"memory/delete", "only copy m", func(ctx context.Context, s *store) error { return s.Delete(ctx, "m") }},
		{"assembly/replace", "only copy a", func(ctx context.Context, s *store) error {
			_, err := s.Assemblies().Put(ctx, varve.Assembly{ID: "a", Name: "another", MemoryIDs: []string{"m"}})
			return err
		}},
		{"assembly/delete", "only copy a", func(ctx context.Context,
			s *store) error {
			return s.Assemblies().Delete(ctx, "a")
		}},
		{"working/replace", "only copy v", func(ctx context.Context,
			s *store) error {
			return s.wm.Set(ctx, "v", "another")
		}},
		{"working/delete", "only copy v", func(ctx context.Context, s *store) error {
			_, err := s.wm.Delete(ctx, "v")
			return err
		}},
		{"working/clear", "only copy v", func(ctx context.Context, s *store) error {
			_, err := s.wm.Clear(ctx)
			return err
		}},
		{"working/clear the scratchpad", "only copy n", func(ctx context.Context, s *store) error {
			_, err := s.wm.ClearScratchpad(ctx)
			return err
		}},
		{"working/clear the task", "only copy t", func(ctx context.Context, s *store) error {
			_, err := s.wm.ClearTask(ctx)
			return err
		}},
		{"working/expire", "only copy e", func(ctx context.Context, s *store) error {
			s.later(3 * time.Hour)
			return s.wm.Set(ctx, "new", "another")
		}},
		{"working/drop", "only copy v", func(ctx context.Context, s *store) error {
			_, err := s.wm.Drop(ctx)
			return err
		}},
		{"working/drop, its checkpoints", "only copy c", func(ctx context.Context, s *store) error {
			_, err := s.wm.Drop(ctx)
			return err
		}},
		{"working/checkpoint rm", "only copy c", func(ctx context.Context, s *store) error {
			_, err := s.wm.DeleteCheckpoint(ctx, s.mark)
			return err
		}},
		{"working/checkpoint restore", "only copy v", func(ctx context.Context, s *store) error {
			_, err := s.wm.Restore(ctx, s.mark)
			return err
		}},
		{"working/consolidate", "only copy t", func(ctx context.Context, s *store) error {
			_, err := s.Working().Consolidate(ctx, scope, varve.Consolidation{Values: []string{"v"}})
			return err
		}},
	}
	for _, how := range []string{"clone", "restore", "log gone"} {
		for _, c := range cases {
			t.Run(how+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				up, wall := 5*time.Hour, time.Unix(1_800_000_000, 0)
				in := func() *varve.Options {
					return storetest.In(&varve.Options{NoBackground: true, Clock: func() time.Time { return wall }},
						storetest.Environment{System: vfs.System{Uptime: func() time.Duration { return up }}})
				}
				top := t.TempDir()
				from, dir := filepath.Join(top, "from"), filepath.Join(top, "store")
				st := fixture.Open(t, from, in())
				s := &store{later: func(d time.Duration) { up, wall = up+d, wall.Add(d) }}
				begin := func() (err error) {
					s.wm, err = s.Working().Open(ctx, scope, nil)
					return err
				}
				s.Store = st
				_, err1 := st.Put(ctx, varve.Memory{ID: "m", Content: "only copy m"})
				_, err2 := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", Name: "only copy a", MemoryIDs: []string{"m"}})
				err := errors.Join(err1, err2, begin(), s.wm.Set(ctx, "v", "only copy c"))
				cp, err3 := s.wm.Checkpoint(ctx, "before")
				s.mark = cp.ID
				_, err4 := s.wm.Append(ctx, "only copy n")
				_, err5 := s.wm.SetTask(ctx, working.Task{Description: "only copy t"})
				if err := errors.Join(err, err3, s.wm.Set(ctx, "v", "only copy v"),
					s.wm.Set(ctx, "e", "only copy e", working.Expires(2*time.Hour)), err4, err5, st.Flush(ctx)); err != nil {
					t.Fatal(err)
				}
				if how == "restore" {
					if _, err := st.Backup(ctx, filepath.Join(top, "backup"), varve.BackupOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				switch how {
				case "restore":
					_, err = varve.Restore(ctx, filepath.Join(top, "backup"), dir, nil)
				case "clone":
					for _, name := range []string{"memories", "assemblies", "working", "config.json", ".gitignore"} {
						err = errors.Join(err, fixture.TakeAlong(filepath.Join(from, name), filepath.Join(dir, name)))
					}
				case "log gone":
					dir = from
					err = errors.Join(os.RemoveAll(filepath.Join(dir, "wal")), os.Remove(filepath.Join(dir, "checkpoint")))
				}
				if err != nil {
					t.Fatal(err)
				}
				s.Store = fixture.Open(t, dir, in())
				if err := begin(); err != nil {
					t.Fatal(err)
				}
				if logHas(t, s.Store, c.loses) {
					t.Fatal("the log has it already")
				}
				before, _, err := s.wm.Entry(ctx, "e")
				if err != nil {
					t.Fatal(err)
				}
				if err := c.do(ctx, s); err != nil {
					t.Fatal(err)
				}
				if !logHas(t, s.Store, c.loses) {
					t.Errorf("%q is nowhere", c.loses)
				}
				if after, ok, err := s.wm.Entry(ctx,
					"e"); err != nil || ok && c.name == "working/replace" && after.Version != before.Version {
					t.Errorf("what was not changed has version %d, was %d: %v", after.Version, before.Version, err)
				}
				bytes := s.Admin().Stats().Durable
				for i := range 3 { // one copy is enough
					if err := s.wm.Set(ctx, "again", fmt.Sprint(i)); err != nil {
						t.Fatal(err)
					}
				}
				if grown := s.Admin().Stats().Durable - bytes; grown > 3*1024 && c.name != "memory/replace" && c.name[0] == 'w' {
					t.Errorf("three small changes took %d bytes of log", grown)
				}
				if err := s.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				for f, err := range s.Admin().Verify(ctx, varve.VerifyOptions{}) {
					if err != nil || f.Severity != repair.Info && f.Kind != repair.BackupDamaged {
						t.Errorf("verify: %v, %v", f, err)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
