package replaced

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/working"
)

// chdirOperations are the operations of a process on a store that it opened by a relative path, in a/,
// after it changed to b/, where the same path is another store. Each returns what it found, which must
// be of a/.
var chdirOperations = map[string]func(ctx context.Context, st *varve.Store) (string, error){
	"close": func(context.Context, *varve.Store) (string, error) { return "", nil },
	"put": func(ctx context.Context, st *varve.Store) (string, error) {
		_, err := st.Put(ctx, varve.Memory{ID: "later", Content: "of a"})
		return "", err
	},
	"get": func(ctx context.Context, st *varve.Store) (string, error) {
		m, err := st.Get(ctx, "filed")
		return m.Content, err
	},
	"list": func(ctx context.Context, st *varve.Store) (string, error) {
		var list []string
		for m, err := range st.Memories(ctx) {
			if err != nil {
				return "", err
			}
			list = append(list, m.Content)
		}
		return strings.Join(list, ", "), nil
	},
	"search": func(ctx context.Context, st *varve.Store) (string, error) {
		hits, err := st.Search(ctx, varve.Query{Text: "filed"})
		var list []string
		for _, h := range hits {
			list = append(list, h.Memory.Content)
		}
		return strings.Join(list, ", "), err
	},
	"update": func(ctx context.Context, st *varve.Store) (string, error) {
		_, err := st.Update(ctx, "filed", func(m *varve.Memory) error { m.Content = "filed, of a, later"; return nil })
		return "", err
	},
	"delete": func(ctx context.Context, st *varve.Store) (string, error) { return "", st.Delete(ctx, "filed") },
	"flush":  func(ctx context.Context, st *varve.Store) (string, error) { return "", st.Flush(ctx) },
	"compact": func(ctx context.Context, st *varve.Store) (string, error) {
		return "", st.Admin().Compact(ctx)
	},
	"rebuild": func(ctx context.Context, st *varve.Store) (string, error) {
		return "", st.Admin().RebuildIndex(ctx)
	},
	"assembly": func(ctx context.Context, st *varve.Store) (string, error) {
		_, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "group", Name: "of a", MemoryIDs: []string{"filed"}})
		if err == nil {
			err = st.Flush(ctx)
		}
		return "", err
	},
	"working": func(ctx context.Context, st *varve.Store) (string, error) {
		m, err := st.Working().Open(ctx, working.Scope{Session: "s"}, nil)
		if err == nil {
			err = errors.Join(m.Set(ctx, "key", "of a"), st.Flush(ctx))
		}
		return "", err
	},
	"config": func(ctx context.Context, st *varve.Store) (string, error) {
		return "", st.Admin().UpdateConfig(ctx, func(c *varve.Config) error { c.IndexBackupCount = new(7); return nil })
	},
	"purge": func(ctx context.Context, st *varve.Store) (string, error) {
		_, err := st.Admin().Purge(ctx, "filed")
		return "", err
	},
	"history": func(ctx context.Context, st *varve.Store) (string, error) {
		n := 0
		for _, err := range st.History(ctx, "filed") {
			if err != nil {
				return "", err
			}
			n++
		}
		return fmt.Sprintf("of a: %d versions", n), nil
	},
	"verify": func(ctx context.Context, st *varve.Store) (string, error) {
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if err != nil || f.Severity != varve.SeverityInfo {
				return "", fmt.Errorf("%+v: %w", f, err)
			}
		}
		return "", nil
	},
	"backup": func(ctx context.Context, st *varve.Store) (string, error) {
		to := filepath.Join(os.Getenv("VARVE_DIR"), "backup")
		if _, err := st.Backup(ctx, to, varve.BackupOptions{}); err != nil {
			return "", err
		}
		b, err := os.ReadFile(filepath.Join(to, "memories", "filed.json"))
		return string(b), err
	},
}

// chdirChild opens storage in a/, puts a memory, changes to b/, does an operation, and closes.
func chdirChild(ctx context.Context, dir, op string) error {
	if err := os.Chdir(filepath.Join(dir, "a")); err != nil {
		return err
	}
	st, err := varve.Open(ctx, "storage", &varve.Options{NoBackground: true, CacheBytes: -1})
	if err != nil {
		return err
	}
	_, err = st.Put(ctx, varve.Memory{ID: "before", Content: "of a"})
	if err == nil {
		err = os.Chdir(filepath.Join(dir, "b"))
	}
	if err != nil {
		return err
	}
	found, err := chdirOperations[op](ctx, st)
	if err != nil {
		err = fmt.Errorf("%s: %w", op, err)
	}
	fmt.Println(found)
	if cerr := st.Close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("close: %w", cerr))
	}
	return err
}

// A store that was opened by a relative path stays the store of that folder when the process changes its
// working directory to a place where the same path is another store: writes go to the first store, reads
// come from it, and the second is untouched, byte for byte.
//
//	go test ./tests/replaced -run TestChdir -v
func TestChdir(t *testing.T) {
	for _, op := range slices.Sorted(maps.Keys(chdirOperations)) {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, of := range []string{"a", "b"} {
				texts := map[string]string{"filed": "filed, of " + of, "only-" + of: "of " + of}
				stored(t, filepath.Join(dir, of, "storage"), texts)
			}
			before, err := snap(filepath.Join(dir, "b"))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), "VARVE_CHILD=chdir:"+op, "VARVE_DIR="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			after, err := snap(filepath.Join(dir, "b"))
			if err != nil {
				t.Fatal(err)
			}
			if list := changes(before, after); len(list) > 0 {
				t.Errorf("the store in b/, which was never opened, was changed:\n\t\t%s", shortly(list, 12))
			}
			if strings.Contains(string(out), "of b") {
				t.Errorf("%s read the store in b/: %s", op, out)
			}
			chdirJudge(t, filepath.Join(dir, "a", "storage"), op)
		})
	}
}

// chdirJudge checks that the store in a/ has what was acknowledged.
func chdirJudge(t *testing.T, dir, op string) {
	t.Helper()
	want := map[string]string{"filed": "filed, of a", "only-a": "of a", "before": "of a"}
	switch op {
	case "put":
		want["later"] = "of a"
	case "update":
		want["filed"] = "filed, of a, later"
	case "delete", "purge":
		delete(want, "filed")
	}
	st, err := varve.Open(t.Context(), dir, &varve.Options{MustExist: true, NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	got := map[string]string{}
	for m, err := range st.Memories(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		got[m.ID] = m.Content
	}
	storetest.SameTexts(t, "the store in a/ after "+op, got, want)
	if n := st.Admin().Config().IndexBackupCount; op == "config" && (n == nil || *n != 7) {
		t.Error("the setting is not in the store in a/")
	}
	if op == "assembly" {
		if _, err := st.Assemblies().Get(t.Context(), "group"); err != nil {
			t.Error(err)
		}
	}
	if op == "working" {
		m, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v, _, err := m.Get(t.Context(), "key"); err != nil || v != "of a" {
			t.Errorf("working memory: %v, %v", v, err)
		}
	}
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

// stored creates a store that has memories, and closes it.
func stored(t testing.TB, dir string, texts map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	st, err := varve.Open(ctx, dir, &varve.Options{SegmentSize: smallSegment, NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	b := new(varve.Batch)
	for _, id := range slices.Sorted(maps.Keys(texts)) {
		b.Put(varve.Memory{ID: id, Content: texts[id]})
	}
	if err := errors.Join(st.Apply(ctx, b), st.Close()); err != nil {
		t.Fatal(err)
	}
}

// smallSegment makes segments end, and be archived and removed, within a test.
const smallSegment = 256 << 10
