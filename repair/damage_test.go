package repair_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/repair"
)

// damage is one kind of damage, and exactly the findings that verify must report for it.
type damage struct {
	name string
	do   func(t *testing.T, dir string) []want
}

type want struct {
	kind     repair.Kind
	path     string
	offset   int64 // anyOffset: any byte of the file
	heals    string
	severity repair.Severity
}

const anyOffset = -2

func file(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }

func bytesOf(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// flip inverts one bit in place and keeps the mtime.
func flip(t *testing.T, name string, at int64) {
	t.Helper()
	b := bytesOf(t, name)
	b[at] ^= 4
	rewrite(t, name, b)
}

// rewrite writes in place and keeps the mtime.
func rewrite(t *testing.T, name string, b []byte) {
	t.Helper()
	info, err := os.Stat(name)
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err == nil {
		err = os.Chtimes(name, info.ModTime(), info.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

func memoryPath(i int) string { return "memories/" + id(i) + ".json" }

// pendingSegment returns a segment that has only entries that are not in files yet, with others behind
// it.
func pendingSegment(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	all, err := filepath.Glob(file(dir, "wal/*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if b := bytesOf(t, name); !bytes.Equal(b[:64], make([]byte, 64)) {
			names = append(names, "wal/"+filepath.Base(name))
		}
	}
	slices.Sort(names)
	if len(names) < 4 {
		t.Fatalf("only %d segments", len(names))
	}
	return names[len(names)-3]
}

func first(t *testing.T, dir, pattern string) string {
	t.Helper()
	m, err := filepath.Glob(file(dir, pattern))
	if err != nil || len(m) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	rel, err := filepath.Rel(dir, m[0])
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(rel)
}

var damages = []damage{
	{"rot, in the archive", func(t *testing.T, dir string) []want {
		flip(t, file(dir, memoryPath(150)), 40)
		return []want{{repair.MemoryRot, memoryPath(150), 40, repair.ByArchive, repair.Healable}}
	}},
	{"rot, in the log", func(t *testing.T, dir string) []want {
		flip(t, file(dir, memoryPath(settled+5)), 55)
		return []want{{repair.MemoryRot, memoryPath(settled + 5), 55, repair.ByLog, repair.Healable}}
	}},
	{"rot, no copy", func(t *testing.T, dir string) []want {
		if err := os.RemoveAll(file(dir, "wal/archive")); err != nil {
			t.Fatal(err)
		}
		flip(t, file(dir, memoryPath(3)), 40)
		return []want{{repair.MemoryRot, memoryPath(3), anyOffset, "", repair.Lost}}
	}},
	{"edited", func(t *testing.T, dir string) []want {
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, memoryPath(9)), bytes.Replace(b, []byte("memory 9 "), []byte("memory nine "), 1))
		return []want{{repair.MemoryEdited, memoryPath(9), -1, repair.ByAdoption, repair.Healable}}
	}},
	{"edited, not valid", func(t *testing.T, dir string) []want {
		b := bytesOf(t, file(dir, memoryPath(9)))
		at := bytes.LastIndexByte(b, '}')
		write(t, file(dir, memoryPath(9)), append(b[:at], "]\n"...))
		return []want{{repair.MemoryInvalid, memoryPath(9), int64(at), repair.ByArchive, repair.Healable}}
	}},
	{"merge conflict", func(t *testing.T, dir string) []want {
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, memoryPath(9)), append([]byte("<<<<<<< HEAD\n"), b...))
		return []want{{repair.MemoryInvalid, memoryPath(9), anyOffset, repair.ByArchive, repair.Healable}}
	}},
	{"another memory's bytes", func(t *testing.T, dir string) []want {
		write(t, file(dir, memoryPath(9)), bytesOf(t, file(dir, memoryPath(10))))
		return []want{{repair.MemoryWrongID, memoryPath(9), -1, repair.ByArchive, repair.Healable}}
	}},
	{"only the time", func(t *testing.T, dir string) []want {
		now := time.Now()
		if err := os.Chtimes(file(dir, memoryPath(9)), now, now); err != nil {
			t.Fatal(err)
		}
		return []want{{repair.MemoryTime, memoryPath(9), -1, repair.ByAdoption, repair.Info}}
	}},
	{"deleted", func(t *testing.T, dir string) []want {
		remove(t, file(dir, memoryPath(100)))
		remove(t, file(dir, memoryPath(settled+1)))
		return []want{
			{repair.MemoryMissing, memoryPath(100), -1, repair.ByArchive, repair.Healable},
			{repair.MemoryMissing, memoryPath(settled + 1), -1, repair.ByLog, repair.Healable},
		}
	}},
	{"empty", func(t *testing.T, dir string) []want {
		write(t, file(dir, memoryPath(9)), nil)
		return []want{{repair.MemoryEmpty, memoryPath(9), -1, repair.ByArchive, repair.Healable}}
	}},
	{"empty, of nobody", func(t *testing.T, dir string) []want {
		write(t, file(dir, "memories/what-was-it.json"), nil)
		return []want{{repair.Unparsable, "memories/what-was-it.json", -1, repair.ByMoving, repair.Lost}}
	}},
	{"truncated", func(t *testing.T, dir string) []want {
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, memoryPath(9)), b[:200])
		return []want{{repair.MemoryInvalid, memoryPath(9), 200, repair.ByArchive, repair.Healable}}
	}},
	{"a folder in its place", func(t *testing.T, dir string) []want {
		remove(t, file(dir, memoryPath(9)))
		if err := os.Mkdir(file(dir, memoryPath(9)), 0o700); err != nil {
			t.Fatal(err)
		}
		return []want{{repair.MemoryUnreadable, memoryPath(9), -1, repair.ByArchive, repair.Healable}}
	}},
	{"an unflushed memory's place is taken", func(t *testing.T, dir string) []want {
		n := settled + unspilt + 2
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, memoryPath(n)), bytes.Replace(b, []byte(id(9)), []byte(id(n)), 1))
		return []want{{repair.MemoryEdited, memoryPath(n), -1, repair.ByAdoption, repair.Healable}}
	}},
	{"stranger", func(t *testing.T, dir string) []want {
		b := bytesOf(t, file(dir, memoryPath(9)))
		write(t, file(dir, "memories/new.json"), bytes.Replace(b, []byte(id(9)), []byte("new"), 1))
		return []want{{repair.Stranger, "memories/new.json", -1, repair.ByAdoption, repair.Healable}}
	}},
	{"copy under another name", func(t *testing.T, dir string) []want {
		write(t, file(dir, "memories/copy.json"), bytesOf(t, file(dir, memoryPath(9))))
		return []want{{repair.Misplaced, "memories/copy.json", -1, repair.ByMoving, repair.Healable}}
	}},
	{"unparsable stranger", func(t *testing.T, dir string) []want {
		write(t, file(dir, "memories/junk.json"), []byte(`{"id": `))
		return []want{{repair.Unparsable, "memories/junk.json", 7, repair.ByMoving, repair.Healable}}
	}},
	{"foreign files", func(t *testing.T, dir string) []want {
		write(t, file(dir, "memories/notes.txt"), []byte("x"))
		write(t, file(dir, "memories/.m.json.swp"), []byte("x"))
		if err := os.Symlink("/etc/passwd", file(dir, "memories/link.json")); err != nil {
			t.Skip(err)
		}
		return []want{
			{repair.Foreign, "memories/.m.json.swp", -1, repair.ByMoving, repair.Info},
			{repair.Foreign, "memories/link.json", -1, repair.ByMoving, repair.Healable},
			{repair.Foreign, "memories/notes.txt", -1, repair.ByMoving, repair.Info},
		}
	}},
	{"bit in the base", func(t *testing.T, dir string) []want {
		flip(t, file(dir, "memory_index.json"), 70000)
		return []want{{repair.IndexDamaged, "memory_index.json", 64 << 10, repair.ByIndex, repair.Healable}}
	}},
	{"bit in the delta", func(t *testing.T, dir string) []want {
		flip(t, file(dir, "memory_index.delta.json"), 1000)
		return []want{{repair.IndexDamaged, "memory_index.delta.json", 0, repair.ByIndex, repair.Healable}}
	}},
	{"base cut in half", func(t *testing.T, dir string) []want {
		b := bytesOf(t, file(dir, "memory_index.json"))
		remove(t, file(dir, "memory_index.json"))
		write(t, file(dir, "memory_index.json"), b[:len(b)/2])
		return []want{{repair.IndexDamaged, "memory_index.json", anyOffset, repair.ByIndex, repair.Healable}}
	}},
	{"base gone", func(t *testing.T, dir string) []want {
		remove(t, file(dir, "memory_index.json"))
		return []want{{repair.IndexDamaged, "memory_index.json", -1, repair.ByIndex, repair.Healable}}
	}},
	{"an old index in its place", func(t *testing.T, dir string) []want {
		b := bytesOf(t, file(dir, first(t, dir, "backups/*.json")))
		remove(t, file(dir, "memory_index.json"))
		remove(t, file(dir, "memory_index.delta.json"))
		write(t, file(dir, "memory_index.json"), b)
		return []want{{repair.IndexDamaged, "memory_index.json", -1, repair.ByIndex, repair.Healable}}
	}},
	{"bit in a backup", func(t *testing.T, dir string) []want {
		name := first(t, dir, "backups/*.json")
		flip(t, file(dir, name), 5)
		return []want{{repair.BackupDamaged, name, 0, repair.ByMoving, repair.Healable}}
	}},
	{"bit in a frame's payload", func(t *testing.T, dir string) []want {
		name := pendingSegment(t, dir)
		flip(t, file(dir, name), 128+64+10)
		return []want{{repair.SegmentDamaged, name, 128, "", repair.Lost}}
	}},
	{"bit in a frame's header", func(t *testing.T, dir string) []want {
		name := pendingSegment(t, dir)
		flip(t, file(dir, name), 128+40)
		return []want{{repair.SegmentDamaged, name, 128, "", repair.Lost}}
	}},
	{"bit in a segment's start", func(t *testing.T, dir string) []want {
		name := pendingSegment(t, dir)
		flip(t, file(dir, name), 70)
		return []want{{repair.SegmentDamaged, name, 0, "", repair.Lost}}
	}},
	{"segment cut short", func(t *testing.T, dir string) []want {
		name := pendingSegment(t, dir)
		if err := os.Truncate(file(dir, name), 20000); err != nil {
			t.Fatal(err)
		}
		return []want{{repair.SegmentDamaged, name, anyOffset, "", repair.Lost}}
	}},
	{"segment zeroed", func(t *testing.T, dir string) []want {
		name := pendingSegment(t, dir)
		write(t, file(dir, name), make([]byte, segments))
		return []want{{repair.SegmentDamaged, name, 0, "", repair.Lost}}
	}},
	{"segment gone", func(t *testing.T, dir string) []want {
		name := pendingSegment(t, dir)
		remove(t, file(dir, name))
		return []want{{repair.SegmentMissing, name, -1, "", repair.Lost}}
	}},
	{"garbage in wal", func(t *testing.T, dir string) []want {
		write(t, file(dir, "wal/00000001.wal"), bytes.Repeat([]byte("garbage "), 100))
		write(t, file(dir, "wal/99999999.wal"), bytes.Repeat([]byte("garbage "), 100))
		write(t, file(dir, "wal/notes"), []byte("x"))
		write(t, file(dir, "wal/1-1.new"), []byte("x"))
		write(t, file(dir, "wal/archive/notes"), []byte("x"))
		return []want{
			{repair.SegmentForeign, "wal/00000001.wal", 0, repair.ByMoving, repair.Healable},
			{repair.SegmentForeign, "wal/99999999.wal", 0, repair.ByMoving, repair.Healable},
			{repair.Leftover, "wal/1-1.new", -1, repair.ByMoving, repair.Info},
			{repair.Foreign, "wal/notes", -1, repair.ByMoving, repair.Healable},
			{repair.Foreign, "wal/archive/notes", -1, repair.ByMoving, repair.Healable},
		}
	}},
	{"bit in the archive", func(t *testing.T, dir string) []want {
		name := first(t, dir, "wal/archive/*.zst")
		flip(t, file(dir, name), 1000)
		return []want{{repair.ArchiveDamaged, name, 24, "", repair.Lost}}
	}},
	{"bit in the archive's head", func(t *testing.T, dir string) []want {
		name := first(t, dir, "wal/archive/*.zst")
		flip(t, file(dir, name), 17)
		return []want{{repair.ArchiveDamaged, name, 0, "", repair.Lost}}
	}},
	{"archive cut between blocks", func(t *testing.T, dir string) []want {
		name := first(t, dir, "wal/archive/*.zst")
		write(t, file(dir, name), bytesOf(t, file(dir, name))[:24])
		return []want{{repair.ArchiveDamaged, name, -1, "", repair.Lost}}
	}},
	{"bit in each slot of the checkpoint", func(t *testing.T, dir string) []want {
		flip(t, file(dir, "checkpoint"), 20)
		flip(t, file(dir, "checkpoint"), 4096+20)
		return []want{
			{repair.CheckpointSlot, "checkpoint", 0, repair.ByLog, repair.Healable},
			{repair.CheckpointSlot, "checkpoint", 4096, repair.ByLog, repair.Healable},
		}
	}},
	{"checkpoint gone", func(t *testing.T, dir string) []want {
		remove(t, file(dir, "checkpoint"))
		return []want{{repair.CheckpointSlot, "checkpoint", -1, repair.ByLog, repair.Healable}}
	}},
	{"config", func(t *testing.T, dir string) []want {
		write(t, file(dir, "config.json"), []byte(`{"varve":1,"flush_threshold":-4}`))
		return []want{{repair.ConfigInvalid, "config.json", -1, repair.ByDefaults, repair.Healable}}
	}},
	{"leftover in tmp", func(t *testing.T, dir string) []want {
		if err := os.MkdirAll(file(dir, "tmp/0123456789abcdef/0"), 0o700); err != nil {
			t.Fatal(err)
		}
		return []want{{repair.Leftover, "tmp/0123456789abcdef", -1, repair.ByMoving, repair.Info}}
	}},
	{"quarantined", func(t *testing.T, dir string) []want {
		write(t, file(dir, "quarantine/x-m.json"), []byte("x"))
		write(t, file(dir, "quarantine/x-m.json.note.json"), []byte("{}"))
		return []want{{repair.Quarantined, "quarantine", -1, "", repair.Info}}
	}},
}

func TestDamage(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, d := range damages {
		t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			st, dir := store(t)
			wants := d.do(t, dir)
			check(t, verify(t, st, varve.VerifyOptions{}), wants)
		})
	}
}

// check compares the findings with the expected ones, one for one.
func check(t *testing.T, found []varve.Finding, wants []want) {
	t.Helper()
	for i, w := range wants {
		if i >= len(found) {
			t.Errorf("not found: %+v", w)
			continue
		}
		f := found[i]
		okOffset := f.Offset == w.offset || w.offset == anyOffset && f.Offset >= -1
		if f.Kind != w.kind || f.Path != w.path || !okOffset || f.Heals != w.heals || f.Severity != w.severity {
			t.Errorf("found %s, offset %d, heals %q\nwant  %+v", f, f.Offset, f.Heals, w)
		}
		if f.Err == nil || f.Stake == "" || f.Next == "" && f.Severity != repair.Info {
			t.Errorf("says too little: %+v", f)
		}
	}
	for _, f := range found[min(len(found), len(wants)):] {
		t.Errorf("and also: %s", f)
	}
	if t.Failed() {
		t.Log(fmt.Sprint(len(found), " findings"))
	}
}
