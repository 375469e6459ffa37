package trust

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/tests/forgery"
)

func TestMain(m *testing.M) { storetest.Main(m, nil) }

// secret is in each file of the folder beside the store.
const secret = "PRIVATE-c4Nf1d"

// box is a folder with a store and, beside it, a folder that must not change.
type box struct{ dir, store, outside, state string }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// template makes a store with everything in it, including what a repair set aside.
func template(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	o := &varve.Options{StateDir: t.TempDir(), SegmentSize: 64 << 10}
	st, err := varve.Open(t.Context(), dir, o)
	must(t, err)
	for i := range 5 {
		_, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: "hello", Embedding: []float32{1, float32(i)}})
		must(t, err)
	}
	must(t, st.Close())
	must(t, os.WriteFile(filepath.Join(dir, "memories", "m3.json"), []byte("{"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "memories", "stray.tmp"), []byte("x"), 0o600))
	plan, err := varve.PlanRepair(t.Context(), dir, o, varve.VerifyOptions{})
	if err == nil {
		_, err = plan.Apply(t.Context())
	}
	must(t, err)
	return dir
}

func newBox(t *testing.T, template string) box {
	t.Helper()
	dir := t.TempDir()
	b := box{dir, filepath.Join(dir, "store"), filepath.Join(dir, "outside"), filepath.Join(dir, "state")}
	must(t, os.CopyFS(b.store, os.DirFS(template)))
	must(t, os.Mkdir(b.state, 0o700))
	for _, name := range []string{"victim", "victim.json", "m0.json", "moved.json", "migrate.json", "memories/m0.json", "wal/0000000000000001.wal", "checkpoint", "config.json"} {
		path := filepath.Join(b.outside, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(secret), 0o600))
	}
	return b
}

// snapshot returns everything in a folder: names, modes, times and bytes.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d", path, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", text)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

// names returns names that lead outside, or nowhere.
func (b box) names() []string {
	return []string{"../outside/victim", "memories/../../outside/m0.json", b.outside + "/victim", "../outside", "..", "/", "a\x00b", "", strings.Repeat("../", 40) + strings.TrimPrefix(b.outside, "/") + "/victim"}
}

// write puts a document into the store, once for each name.
func (b box) write(t *testing.T, path string, doc any) {
	t.Helper()
	text, err := json.Marshal(doc)
	must(t, err)
	path = filepath.Join(b.store, filepath.FromSlash(path))
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, append(text, '\n'), 0o600))
}

// forged returns the kinds of forgeries, each for one name or for all at once.
func forged(t *testing.T) map[string]func(t *testing.T, b box, name string) {
	t.Helper()
	const id = "0190f3a5-0000-7000-8000-000000000001"
	all := map[string]func(t *testing.T, b box, name string){
		"moved.json": func(t *testing.T, b box, name string) {
			b.write(t, "moved.json", map[string]any{"varve_moved": 1, "to": name, "store": id, "id": id, "when": "2026-01-01T00:00:00Z"})
		},
		"migrate.json": func(t *testing.T, b box, name string) {
			b.write(t, "migrate.json", map[string]any{"varve_migration": 1, "from": name, "to": b.store, "state": "ready", "store": id, "id": id})
		},
		// The record of a repair by an older version, which a purge reads. Each path in it is the name.
		"undo": func(t *testing.T, b box, name string) {
			kept := map[string]any{"kept": name, "size": len(secret), "mtime": "2026-01-01T00:00:00Z"}
			change := map[string]any{"n": 1, "do": "set aside", "path": name, "id": "m0", "before": kept, "after": kept}
			b.write(t, "quarantine/repair-1.undo.jsonl", change)
		},
		"parked": func(t *testing.T, b box, name string) {
			escaped := strings.NewReplacer("/", "@", "\x00", "@").Replace(name)
			for _, at := range []string{"tmp/parked/" + escaped + "@5@5@5@x-1", "tmp/parked/memories@" + escaped + "@5@5@5@x-1", "tmp/1-f-0123456789ab/" + escaped} {
				if len(filepath.Base(at)) < 250 && escaped != "" && escaped != ".." {
					b.write(t, at, map[string]string{"id": "m0", "content": "parked", "path": name})
				}
			}
		},
		"quarantine notes": func(t *testing.T, b box, name string) {
			b.write(t, "quarantine/m0.json", map[string]string{"id": "m0", "content": "put aside"})
			b.write(t, "quarantine/m0.json.note.json", map[string]string{
				"why": "forged", "path": name, "from": name, "id": name, "file": name, "original": name,
			})
		},
		"a memory's id": func(t *testing.T, b box, name string) {
			b.write(t, "memories/forged.json", map[string]string{"id": name, "content": "forged"})
		},
		"backup.json": func(t *testing.T, b box, name string) {
			b.write(t, "backups/old/backup.json", map[string]string{"varve_backup": name, "store": id, "path": name})
		},
	}
	for _, f := range forgery.All() {
		if strings.Contains(f.Name, "outside") || strings.Contains(f.Name, "another file") || strings.Contains(f.Name, "vector of another") || strings.HasPrefix(f.Name, "checkpoint: all marks") {
			all[f.Name] = func(t *testing.T, b box, name string) { _ = f.Make(b.store) }
		}
	}
	return all
}

// operations returns what a user does with a store. Their results are searched for the secret.
func operations(b box) map[string]func(ctx context.Context) (any, error) {
	o := &varve.Options{StateDir: b.state, MustExist: true}
	in := func(do func(ctx context.Context, st *varve.Store) (any, error)) func(ctx context.Context) (any, error) {
		return func(ctx context.Context) (answer any, err error) {
			st, err := varve.Open(ctx, b.store, o)
			if err != nil {
				return nil, err
			}
			answer, err = do(ctx, st)
			return answer, errors.Join(err, st.Close())
		}
	}
	apply := func(ctx context.Context) (any, error) {
		plan, err := varve.PlanRepair(ctx, b.store, o, varve.VerifyOptions{})
		if err != nil {
			return nil, err
		}
		return plan.Apply(ctx)
	}
	return map[string]func(ctx context.Context) (any, error){
		"use": in(func(ctx context.Context, st *varve.Store) (any, error) {
			var all []any
			var errs error
			note := func(x any, err error) { all, errs = append(all, x), errors.Join(errs, err) }
			for _, id := range append(b.names(), "m0", "m3", "x") {
				if id == "" {
					continue
				}
				m, err := st.Get(ctx, id)
				note(m, err)
				note(nil, st.Delete(ctx, id))
			}
			put, err := st.Put(ctx, varve.Memory{ID: "../outside/victim", Content: "put"})
			note(put, err)
			note(nil, st.Flush(ctx))
			note(st.Health(ctx), nil)
			return all, errs
		}),
		"verify": in(func(ctx context.Context, st *varve.Store) (any, error) {
			var all []any
			for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				all = append(all, fmt.Sprintf("%+v", f))
				if err != nil {
					return all, err
				}
			}
			return all, nil
		}),
		"purge": in(func(ctx context.Context, st *varve.Store) (any, error) {
			return st.Admin().Purge(ctx, "../outside/victim", "m0", "m1")
		}),
		"compact": in(func(ctx context.Context, st *varve.Store) (any, error) {
			return nil, errors.Join(st.Admin().Compact(ctx), st.Admin().RebuildIndex(ctx))
		}),
		"repair": apply,
		"repair, quarantine": func(ctx context.Context) (any, error) {
			a, err := apply(ctx)
			q, qerr := in(setAside)(ctx)
			return []any{a, q}, errors.Join(err, qerr)
		},
		"quarantine": in(setAside),
		"backup, restore": in(func(ctx context.Context, st *varve.Store) (any, error) {
			info, err := st.Backup(ctx, filepath.Join(b.dir, "backup"), varve.BackupOptions{})
			if err != nil {
				return info, err
			}
			r, err := varve.Restore(ctx, filepath.Join(b.dir, "backup"), filepath.Join(b.dir, "restored"), &varve.RestoreOptions{Options: o})
			return []any{info, r}, err
		}),
		"migrate": func(ctx context.Context) (any, error) {
			return varve.Migrate(ctx, b.store, filepath.Join(b.dir, "moved"), &varve.MigrateOptions{Switch: true, RemoveSource: true, Options: o})
		},
	}
}

// setAside lists, reads, restores and drops files in quarantine. Many of them are not documents, and no
// name leads outside.
func setAside(ctx context.Context, st *varve.Store) (any, error) {
	var all []any
	quarantine := st.Admin().Quarantine()
	var names []string
	for q, err := range quarantine.All(ctx) {
		if err != nil {
			return all, err
		}
		var b bytes.Buffer
		_, cerr := quarantine.Copy(ctx, q.Name, &b)
		r, rerr := quarantine.Restore(ctx, q.Name)
		all = append(all, q, b.String(), r, fmt.Sprint(cerr, rerr))
		names = append(names, q.Name)
	}
	for _, name := range []string{"../outside/victim", "../../outside", ".."} {
		if dropped, err := quarantine.Drop(ctx, name); err == nil || len(dropped) > 0 {
			return all, fmt.Errorf("dropped %q", dropped)
		}
	}
	dropped, err := quarantine.Drop(ctx, names...)
	if err == nil && len(dropped) < len(names) {
		err = fmt.Errorf("dropped %q of %q", dropped, names)
	}
	return append(all, dropped), err
}

// TestTrust runs every operation on every forgery.
func TestTrust(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	from := template(t)
	lies := forged(t)
	ops := slices.Sorted(maps.Keys(operations(box{})))
	n, worked := 0, map[string]int{}
	for _, lie := range slices.Sorted(maps.Keys(lies)) {
		for i := range (box{outside: "/outside"}).names() {
			for _, op := range ops {
				if n++; n%7 != 0 && !proofs.Long() { // the sample has each forgery, name and operation
					continue
				}
				b := newBox(t, from)
				name := b.names()[i]
				lies[lie](t, b, name)
				before := snapshot(t, b.outside)
				answer, err := operations(b)[op](t.Context())
				if err == nil {
					worked[op]++
				}
				what := fmt.Sprintf("%s names %q: %s: %v", lie, name, op, err)
				if after := snapshot(t, b.outside); after != before {
					t.Errorf("%s\nwhat is outside has changed:\n%s\nwas\n%s", what, after, before)
				}
				if said := fmt.Sprintf("%+v %v", answer, err); strings.Contains(said, secret) {
					t.Errorf("%s\ntold: %s", what, said)
				}
				for _, dir := range []string{b.store, b.state, filepath.Join(b.dir, "backup"), filepath.Join(b.dir, "restored"), filepath.Join(b.dir, "moved")} {
					if _, err := os.Lstat(dir); err == nil && strings.Contains(snapshot(t, dir), secret) {
						t.Errorf("%s\n%s has what only a file outside says", what, dir)
					}
				}
				entries, err := os.ReadDir(b.dir)
				must(t, err)
				for _, e := range entries {
					if !slices.Contains([]string{"store", "outside", "state", "backup", "restored", "moved"}, e.Name()) {
						t.Errorf("%s\n%s was made", what, e.Name())
					}
				}
				must(t, os.RemoveAll(b.dir))
			}
		}
	}
	for _, op := range ops {
		if worked[op] == 0 && op != "use" { // not every id is one
			t.Errorf("%s has worked on none", op)
		}
	}
	t.Logf("%d cases; worked: %v", n, worked)
}
