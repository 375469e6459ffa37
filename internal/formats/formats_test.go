package formats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumented verifies that docs/releases.md has the formats of this build.
func TestDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "releases.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range All() {
		reads := fmt.Sprint(f.Oldest)
		if f.Writes > f.Oldest {
			reads += " and later"
		}
		row := fmt.Sprintf("| %d | %s |\n", f.Writes, reads)
		begin := fmt.Sprintf("| %s | ", f.Name)
		_, rest, ok := strings.Cut(string(text), "\n"+begin)
		line, _, _ := strings.Cut(rest, "\n")
		if !ok || !strings.HasSuffix(line+"\n", row) || !strings.Contains(line, strings.Fields(f.Files)[0]) {
			t.Errorf("docs/releases.md has %q, want %s%s … %s", line, begin, f.Files, row)
		}
	}
}
