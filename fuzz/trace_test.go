package fuzz

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/trace"
)

var update = flag.Bool("update", false, "write the golden files")

// The calls of one put, one flush and one open, in order. A changed order of create, write, sync,
// rename, folder sync, lock and store is visible in a review.
func TestTrace(t *testing.T) { traced(t, "", nil) }

// A store that keeps writers makes the same calls, except that it commits the explanation of the writer
// before its first put and writes wal/writers before the index, and has larger frames.
func TestTraceWriters(t *testing.T) { traced(t, "writers-", &varve.Writer{Program: "trace"}) }

func traced(t *testing.T, prefix string, w *varve.Writer) {
	m, h := newMachine(), newHistory()
	var lines *strings.Builder
	a := &actor{h: h, name: "trace", now: m.now}
	open := func() {
		fsys, o := m.process("trace")
		o.Writer = w
		storetest.Of(o).System.FS = trace.New(fsys, dir, trace.Changing, func(line string) {
			if lines != nil {
				fmt.Fprintln(lines, line)
			}
		})
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		a.st = st
	}
	record := func(name string, f func()) {
		lines = new(strings.Builder)
		f()
		golden(t, prefix+name, plain(lines.String()))
		lines = nil
	}
	record("create", open)
	recordOf := func(name string, f func()) { // what only a writer changes
		if w == nil {
			f()
			return
		}
		record(name, f)
	}
	recordOf("first", func() { a.put("before", 100, "", 0) })
	a.put("replaced", 100, "s1", 0)
	recordOf("saved", func() { a.flush() })
	record("put", func() { a.put("x", 100, "s1", 0) })
	a.put("replaced", 120, "s1", 0)
	a.delete("before")
	record("flush", func() { a.flush() })
	record("close", func() { a.close() })
	record("open", open)
	a.put("y", 100, "", 0)
	m.disk.Kill(m.views["trace"])
	record("recover", open)
	if wrong := h.verdict(); len(wrong) > 0 {
		t.Fatal(joinWrong(wrong))
	}
}

var (
	pageCleared = regexp.MustCompile(`(?m)(^store wal/shared word=\d+ value=0\n){20,}`)
	holder      = regexp.MustCompile(`(store wal/shared word=(?:1[6-9]|2[01])) value=[1-9]\d*`)
	moment      = regexp.MustCompile(`(store wal/shared word=3) value=[1-9]\d{12,}`)
	// The manifest of the words has checksums as decimal numbers, whose lengths vary with the names that are random.
	manifest = regexp.MustCompile(`(?m)^(write tmp/index\.<token> off=0 size=)2[2-5]\d$`)
	made     = regexp.MustCompile(`(tmp/(?:index\.|writers\.)?|config\.json\.|\.gitignore\.)[0-9a-f]{12,16}`)
)

// plain removes what differs between machines or is irrelevant.
func plain(lines string) string {
	lines = pageCleared.ReplaceAllString(lines, "store wal/shared: all words but one 0\n")
	lines = holder.ReplaceAllString(lines, "$1 value=<process and time>")
	lines = moment.ReplaceAllString(lines, "$1 value=<generation>")
	lines = made.ReplaceAllString(lines, "$1<token>")
	return manifest.ReplaceAllString(lines, "$1<manifest>")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "trace", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			t.Errorf("%s differs from line %d on; if the new order is right: go test ./fuzz -run TestTrace -update\n--- now:\n%s", path, i+1, got)
			return
		}
	}
}
