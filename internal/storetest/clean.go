package storetest

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/repair"
)

// ExpectClean fails the test if verifying a store found a fault, or if the store has files in quarantine or temporary
// files. alone must be false if other processes have the store open: then temporary files, which these processes may
// just be writing, are allowed.
func ExpectClean(t testing.TB, verified iter.Seq2[repair.Finding, error], dir string, alone bool) {
	t.Helper()
	AllWell(t, verified)
	for _, pattern := range []string{"quarantine/*.json", "wal/*.new", "*.new", "tmp/*/*.new"} {
		if !alone && !strings.HasPrefix(pattern, "quarantine") {
			continue
		}
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
			var text []byte
			for _, name := range left[:min(len(left), 6)] {
				b, _ := os.ReadFile(name)
				text = fmt.Appendf(text, "%.1000s\n", b)
			}
			t.Errorf("%d files were left behind although no file was edited: %v\n%s", len(left), left, text)
		}
	}
}

// AllWell fails the test if verified, the result of verifying a store, has an error or a finding other than
// repair.Info.
func AllWell(t testing.TB, verified iter.Seq2[repair.Finding, error]) {
	t.Helper()
	for f, err := range verified {
		if err != nil || f.Severity != repair.Info {
			t.Errorf("verify: %+v, %v", f, err)
		}
	}
}
