package varve_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLeastAdvice verifies that no message and no page advises more than necessary: neither to change the owner of a
// whole store, nor to make the disk of the system writable. TestRefuses of internal/env checks what messages name.
func TestLeastAdvice(t *testing.T) {
	t.Parallel()
	much := regexp.MustCompile(`chown (-h )?-R|remount,rw / |remount,rw /["'` + "`" + `\n]|chmod -R (a|o|777)`)
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || path == "bench") {
			return filepath.SkipDir
		}
		if d.IsDir() || strings.HasSuffix(path, "_test.go") ||
			!strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md") {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if at := much.FindString(string(text)); err == nil && at != "" {
			t.Errorf("%s: advises %q: name the one file, and the least that helps", path, at)
		}
		return err
	})
	if err != nil || files < 300 {
		t.Errorf("%d files, %v", files, err)
	}
}
