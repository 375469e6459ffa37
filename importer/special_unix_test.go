//go:build linux || darwin

package importer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
)

// read reads a source completely; it waits for at most a minute.
func read(t *testing.T, path string, format Format) (g got, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var src *Source
		if src, err = Open(path, format, Options{}); err != nil {
			return
		}
		defer src.Close()
		for e, rerr := range src.All(t.Context()) {
			if rerr != nil {
				err = rerr
			} else if e.Problem != nil {
				g.problems = append(g.problems, *e.Problem)
			} else {
				g.items = append(g.items, *e.Item)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("reading %s as %q does not end", path, format)
	}
	return g, err
}

// A pipe, a device or a socket as the source is refused, without waiting for it.
func TestSourceIsSpecial(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "x.jsonl")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, "/dev/zero"} {
		for _, format := range append(Formats(), "") {
			_, err := read(t, path, format)
			if !errors.Is(err, vfs.ErrNotRegular) || !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s as %q: %v", path, format, err)
			}
		}
	}
}

// Pipes in the place of a source's files are reported, and the other files are read.
func TestSourceHoldsSpecial(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"memory_index.json", "memories/x.json", "config.json", "id_to_index_mapping.json", "vector_index/mapping.json", "faiss_index.bin",
		"vector_index/memory_vectors.faiss", "stats/assembly_activation_stats.json", "logs/merge_log.jsonl",
		"assemblies/x.json", "assemblies",
	} {
		dir := tree(t, "memories/a.json", `{"id":"a","content":"of a","embedding":[1,2]}`)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, format := range []Format{Synthians, ""} {
			g, err := read(t, dir, format)
			if err != nil || len(g.items) != 1 {
				t.Errorf("%s: %d taken, %v", name, len(g.items), err)
			}
		}
	}
	for format, name := range map[Format]string{JSONL: "b.jsonl", Vizor: "b.json", ServerMemory: "b.jsonl"} {
		dir := tree(t, "a.jsonl", mem("a")+"\n")
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if g, err := read(t, dir, format); err != nil || !slices.ContainsFunc(g.problems, func(p Problem) bool { return p.Path == name && strings.Contains(p.Reason, "FIFO") }) {
			t.Errorf("%s: %v, %v", format, g.problems, err)
		}
	}
}

// Reading an empty sparse file of 8 TiB ends, in whatever format it is read, and the end is reported.
func TestSourceIsSparse(t *testing.T) {
	t.Parallel()
	proofs.ManyProcesses(t, "it reads a gigabyte of nothing")
	for _, name := range []string{"b.jsonl", "b.json", "logs/merge_log.jsonl"} {
		dir := tree(t, "a.jsonl", mem("a")+"\n")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 8<<40); err != nil {
			t.Skipf("no files of 8 TiB here: %v", err)
		}
		for _, format := range Formats() {
			if _, err := read(t, dir, format); err != nil {
				t.Errorf("%s as %s: %v", name, format, err)
			}
			if _, err := read(t, path, format); err != nil && !errors.Is(err, errs.ErrInvalid) {
				t.Errorf("%s alone as %s: %v", name, format, err)
			}
		}
		if name == "b.jsonl" {
			g, err := read(t, dir, JSONL)
			if err != nil || len(g.items) != 1 || len(g.problems) != 1 || g.problems[0].Kind != KindCorrupt { // it begins with zeros, and is not read further
				t.Errorf("%s: %+v, %v", name, g.problems, err)
			}
		}
	}
}
