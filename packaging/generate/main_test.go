package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
)

// Two runs write the same bytes and times; what is in the way is kept.
func TestGenerate(t *testing.T) {
	t.Parallel()
	proofs.ManyProcesses(t, "memctl is built")
	o := options{release: "1.2.3", time: 1769871845}
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	old := filepath.Join(two, "man", "memctl-old.1.gz")
	if err := os.MkdirAll(filepath.Dir(old), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{one, two} {
		if err := o.generate(dir); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, pattern := range []string{"man/*", "completions/*", "store.tar", licensesFile} {
		names, err := filepath.Glob(filepath.Join(one, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range names {
			n++
			rel, err := filepath.Rel(one, path)
			if err != nil {
				t.Fatal(err)
			}
			a, aerr := os.ReadFile(path)
			b, berr := os.ReadFile(filepath.Join(two, rel))
			info, err := os.Stat(path)
			if aerr != nil || berr != nil || err != nil || string(a) != string(b) || len(a) < 100 || !info.ModTime().Equal(time.Unix(o.time, 0)) {
				t.Errorf("%s: %v, %v, %v, %d and %d bytes, %v", rel, aerr, berr, err, len(a), len(b), info.ModTime())
			}
		}
	}
	if n < 50 {
		t.Errorf("%d files", n)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("a page of an older version is kept")
	}
	page, err := os.Open(filepath.Join(one, "man", "memctl-put.1.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	z, err := gzip.NewReader(page)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || !strings.Contains(string(text), `"2026\-01\-31" "memctl 1.2.3"`) {
		t.Errorf("%v: %.200s", err, text)
	}
	licenses, err := os.ReadFile(filepath.Join(one, licensesFile))
	for _, name := range []string{"the Go standard library", "github.com/spf13/cobra v", "github.com/fsnotify/fsnotify v", "github.com/klauspost/compress v"} {
		if err != nil || strings.Count(string(licenses), "\n"+name) == 0 || len(licenses) < 20_000 {
			t.Errorf("no licence of %s: %v", name, err)
		}
	}
	other := filepath.Join(one, "mine")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.generate(one); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("a folder with other files: %v", err)
	}
}
