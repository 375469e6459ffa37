package repair_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// files returns the bytes of all files of a store outside quarantine/ and tmp/.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, dir)), "/")
		if rel == "quarantine" || rel == "tmp" {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && !strings.HasSuffix(rel, ".lock") && rel != "wal/shared" && rel != "wal/owner" {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[rel] = string(bytes.TrimRight(b, "\x00")) // without preallocated zeros
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inQuarantine reports whether a file in quarantine has the content b.
func inQuarantine(t *testing.T, dir, b string) bool {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "quarantine", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(name string) bool {
		content, err := os.ReadFile(name)
		return err == nil && string(bytes.TrimRight(content, "\x00")) == b
	})
}

// TestReplacedIsKept: after a repair of any kind of damage, what it replaced or removed is in
// quarantine, except for derived files and files that it adopts.
func TestReplacedIsKept(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for i, h := range harms {
		if i%proofs.Every(5) != 0 {
			continue
		}
		t.Run(strings.ReplaceAll(h.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := closedStore(t)
			h.do(t, dir)
			was := files(t, dir)
			apply(t, planOf(t, dir))
			now := files(t, dir)
			for rel, b := range was {
				derived := rel == "checkpoint" || strings.HasPrefix(rel, "wal/0") || strings.HasPrefix(rel, "memory_index") ||
					strings.HasPrefix(rel, "view_index") || strings.HasSuffix(rel, ".new")
				if now[rel] != b && !derived && !inQuarantine(t, dir, b) {
					t.Errorf("%s was replaced, and its %d bytes are not in quarantine", rel, len(b))
				}
			}
			if names, err := filepath.Glob(filepath.Join(dir, "quarantine", "*.undo.jsonl")); err != nil || len(names) > 0 {
				t.Errorf("%q, %v", names, err)
			}
		})
	}
}
