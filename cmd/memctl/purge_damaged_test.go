package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// The store of the tests below: three memories in the first segment of the log, each with a text of
// its own, and one that is long enough to be compressed.
var damagedIDs = []string{"m-first", "m-second", "m-third"}

func tokenOf(id string) string { return "zebra-" + id + "-quagga" }

func damagedStore(t *testing.T) *inProcess {
	t.Helper()
	c := &inProcess{t, t.TempDir()}
	c.ok("init", c.store(), "--segment-size", "65536")
	var lines strings.Builder
	for _, id := range damagedIDs {
		fmt.Fprintf(&lines, "{\"id\":%q,\"content\":%q}\n", id, "what nobody may know: "+tokenOf(id))
	}
	fmt.Fprintf(&lines, "{\"id\":\"long\",\"content\":%q}\n", strings.Repeat("a long text, and more of it; ", 500))
	file := filepath.Join(c.dir, "all.jsonl")
	writeFile(t, file, lines.String())
	c.ok("import", file, "--store", c.store(), "-q")
	return c
}

// flip changes one byte of a file.
func flip(t *testing.T, name string, at int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// frameOf is where the frame of a memory begins in the bytes of the first segment, and its length.
func frameOf(t *testing.T, b []byte, id string) (at, size int64) {
	t.Helper()
	start, h, err := segment.ParseStart(b)
	if err != nil {
		t.Fatal(err)
	}
	geo := start.Geometry
	for end := h.End(); ; end = h.End() {
		if h, err = geo.ParseHeader(b[geo.Offset(end):], end); err != nil {
			t.Fatalf("no frame of %s: %v", id, err)
		}
		if key := b[geo.Offset(end)+segment.HeaderSize:][:h.KeyLen]; string(key) == "m"+id {
			return geo.Offset(end), int64(h.Size())
		}
	}
}

// traces are the files of a store in which a text is, also below the compression of the archive.
func traces(t *testing.T, dir string, texts ...string) (in []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if plain, _, ok := past.InflateCopy(b); ok {
			b = append(b, plain...)
		}
		for _, text := range texts {
			if bytes.Contains(b, []byte(text)) {
				in = append(in, fmt.Sprintf("%s has %q", name, text))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// archived has the log go on until its first segment is only in the archive.
func archived(t *testing.T, c *inProcess) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	file := filepath.Join(c.dir, "more.jsonl")
	for i := range 20 {
		var lines strings.Builder
		for k := range 3 {
			text := make([]byte, 20000)
			for j := range text {
				text[j] = ' ' + byte(random.IntN(90))
			}
			fmt.Fprintf(&lines, "{\"id\":\"more-%d-%d\",\"content\":%q}\n", i, k, text)
		}
		writeFile(t, file, lines.String())
		c.ok("import", file, "--store", c.store(), "-q")
		c.ok("flush", "-q")
		if _, err := os.Stat(filepath.Join(c.store(), "wal", "00000001.wal")); os.IsNotExist(err) {
			if _, err := os.Stat(filepath.Join(c.store(), "wal", "archive", "00000001.zst")); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the first segment is not archived")
}

// purged checks that a purge ends, that nothing of the memory is left in any file, that the others are
// there, and that the damage is named from then on and is no damage.
func purged(t *testing.T, c *inProcess, id string) {
	t.Helper()
	if code, out, errOut := c.run("", "purge", id, "--yes"); code != cli.CodeOK {
		t.Errorf("purge: exit status %d: %s%s", code, out, errOut)
	}
	if in := traces(t, c.store(), tokenOf(id), id); len(in) > 0 {
		t.Errorf("after the purge of %s:\n%s", id, strings.Join(in, "\n"))
	}
	for _, other := range append([]string{"long"}, damagedIDs...) {
		if code, _, errOut := c.run("", "get", other); (code == cli.CodeOK) != (other != id) {
			t.Errorf("get %s: exit status %d: %s", other, code, errOut)
		}
	}
	if code, out, errOut := c.run("", "verify"); code != cli.CodeOK {
		t.Errorf("verify afterwards: exit status %d: %s%s", code, out, errOut)
	}
	if code, out, errOut := c.run("", "purge", "nothing", "--yes"); code == cli.CodeLost {
		t.Errorf("another purge: exit status %d: %s%s", code, out, errOut)
	}
}

// TestPurgeOfADamagedLog: a byte of a flushed segment is flipped, anywhere. Whether the purge comes
// before the repair, after it, or when the segment is in the archive: it ends, nothing of what was purged
// is left, and what the history lost is named.
func TestPurgeOfADamagedLog(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	id := damagedIDs[1]
	places := map[string]func(at, size int64) int64{
		"start header":  func(int64, int64) int64 { return 30 },
		"start payload": func(int64, int64) int64 { return segment.HeaderSize + 20 },
		"length":        func(at, _ int64) int64 { return at },
		"kind":          func(at, _ int64) int64 { return at + 8 },
		"key length":    func(at, _ int64) int64 { return at + 10 },
		"position":      func(at, _ int64) int64 { return at + 17 },
		"checksum":      func(at, _ int64) int64 { return at + 60 },
		"key":           func(at, _ int64) int64 { return at + segment.HeaderSize + 3 },
		"record":        func(at, _ int64) int64 { return at + segment.HeaderSize + 12 },
		"text":          func(at, size int64) int64 { return at + size/2 },
		"next header":   func(at, size int64) int64 { return at + size + 1 },
	}
	n := 0
	for _, name := range slices.Sorted(maps.Keys(places)) {
		place := places[name]
		for _, when := range []string{"before the repair", "after the repair", "archived"} {
			for _, target := range []string{id, damagedIDs[0]} {
				if n++; !proofs.Long() && n%5 != 0 { // each place once, and each time and target
					continue
				}
				t.Run(name+"/"+when+"/"+target, func(t *testing.T) {
					t.Parallel()
					c := damagedStore(t)
					path := filepath.Join(c.store(), "wal", "00000001.wal")
					b, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					at, size := frameOf(t, b, id)
					flip(t, path, place(at, size))
					if code, out, _ := c.run("", "verify"); code == cli.CodeOK {
						t.Errorf("verify: %s", out)
					}
					switch when {
					case "after the repair":
						if code, out, errOut := c.run("", "repair", "--apply"); code != cli.CodeOK {
							t.Fatalf("repair: exit status %d: %s%s", code, out, errOut)
						}
					case "archived":
						archived(t, c)
						if out := c.ok("verify", "--json"); !strings.Contains(out, `"history gap"`) {
							t.Errorf("verify does not name what the archiver left out: %s", out)
						}
					}
					purged(t, c, target)
				})
			}
		}
	}
}

// TestPurgeOfADamagedArchive: a byte of an archived segment is flipped, in the file or, as older
// programs left it, in a frame below sound checksums of blocks. verify names it, and a purge ends, before
// the repair and after it.
func TestPurgeOfADamagedArchive(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	for i, name := range []string{"magic", "version", "number", "block length", "block size", "block checksum", "block",
		"frame", "frame header"} {
		for _, repaired := range []bool{false, true} {
			if !proofs.Long() && repaired != (i%2 == 0) { // each once
				continue
			}
			t.Run(fmt.Sprint(name, "/repaired ", repaired), func(t *testing.T) {
				t.Parallel()
				c := damagedStore(t)
				path := filepath.Join(c.store(), "wal", "archive", "00000001.zst")
				raw := filepath.Join(c.store(), "wal", "00000001.wal")
				b, err := os.ReadFile(raw)
				if err != nil {
					t.Fatal(err)
				}
				archived(t, c)
				at, _ := frameOf(t, b, damagedIDs[1])
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				switch name {
				case "frame":
					forgeCopy(t, path, at+segment.HeaderSize+40)
				case "frame header":
					forgeCopy(t, path, at+60)
				default:
					flip(t, path, map[string]int64{"magic": 3, "version": 8, "number": 16, "block length": 24, "block size": 28,
						"block checksum": 36, "block": info.Size() / 2}[name])
				}
				if code, out, _ := c.run("", "verify"); code == cli.CodeOK || !strings.Contains(out, "archive damaged") {
					t.Errorf("verify: exit status %d: %s", code, out)
				}
				if repaired {
					if code, out, errOut := c.run("", "repair", "--apply"); code != cli.CodeOK {
						t.Fatalf("repair: exit status %d: %s%s", code, out, errOut)
					}
				}
				purged(t, c, damagedIDs[1])
			})
		}
	}
}

// TestPurgeOfADamagedIndexBackup: a backup of the index that cannot be read is overwritten and named: it
// is of no use, and would stop every purge.
func TestPurgeOfADamagedIndexBackup(t *testing.T) {
	t.Parallel()
	c := damagedStore(t)
	archived(t, c)
	list, err := filepath.Glob(filepath.Join(c.store(), "backups", "memory_index.*.json"))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	c.ok("put", "a late one", "--id", "late", "-q")
	b, err := os.ReadFile(list[0])
	if err != nil || bytes.Contains(b, []byte("late")) {
		t.Fatal("the backup has it:", err)
	}
	flip(t, list[0], int64(len(b)/2))
	code, out, errOut := c.run("", "purge", "late", "--yes")
	if code != cli.CodeOK || !strings.Contains(errOut, "backups/memory_index.") {
		t.Errorf("purge: exit status %d: %s%s", code, out, errOut)
	}
	if _, err := os.Stat(list[0]); !os.IsNotExist(err) {
		t.Error("it is still there:", err)
	}
	c.ok("verify")
}

// forgeCopy flips a byte of a segment in its copy, and signs the block again.
func forgeCopy(t *testing.T, path string, at int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	plain, whole, ok := past.InflateCopy(b)
	if !ok || !whole {
		t.Fatal("the copy is not whole")
	}
	plain[at] ^= 0x10
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	packed := enc.EncodeAll(plain, nil)
	le := binary.LittleEndian
	b = le.AppendUint32(b[:24], uint32(len(packed)))
	b = le.AppendUint32(b, uint32(len(plain)))
	b = le.AppendUint64(b, xxhash.Sum64(append(bytes.Clone(packed), plain...)))
	if err := os.WriteFile(path, append(b, packed...), 0o600); err != nil {
		t.Fatal(err)
	}
}
