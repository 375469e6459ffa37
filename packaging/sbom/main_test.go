package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The document of this test's own program names its modules, and two of them are equal.
func TestDocument(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1769871845, 0)
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	for _, path := range []string{one, two} {
		if err := write(program, path, "1.2.3", at); err != nil {
			t.Fatal(err)
		}
	}
	a, aerr := os.ReadFile(one)
	b, berr := os.ReadFile(two)
	if aerr != nil || berr != nil || string(a) != string(b) {
		t.Fatalf("%v, %v: two documents differ", aerr, berr)
	}
	var d document
	if err := json.Unmarshal(a, &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "SPDX-2.3" || d.Created.Created != "2026-01-31T15:04:05Z" || len(d.Packages) < 2 || len(d.Relationships) != len(d.Packages) ||
		d.Packages[0].Name != "github.com/varve-db/varve" || d.Packages[0].Version != "1.2.3" || len(d.Packages[0].Checksums) != 1 {
		t.Errorf("%s", a)
	}
	ids := map[string]bool{}
	for _, p := range d.Packages {
		if ids[p.ID] || p.Version == "" || !strings.HasPrefix(p.Refs[0].Locator, "pkg:golang/") {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(text, one, "", at); err == nil {
		t.Error("a text has a document")
	}
}
