package index

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
)

var entries = flag.Int("entries", 100_000, "entries of the tables that benchmarks use")

func TestBackups(t *testing.T) {
	dir := t.TempDir()
	m := newModel()
	s := Empty(8)
	var lsns []uint64
	for i := range 6 {
		m.put(Memories, fmt.Sprint(i), "", time.Time{})
		if w, err := WriteBase(s, target(vfs.OS(), dir, m.lsn), m.take()); err != nil || w.BackupErr != nil {
			t.Fatal(err, w.BackupErr)
		}
		lsns = append(lsns, m.lsn)
		_ = s.Release()
		var err error
		if s, err = Load(vfs.OS(), dir, Want{Store: store}, nil); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = s.Release() }()
	_ = os.WriteFile(filepath.Join(dir, BackupsDir, "memory_index.007.json"), nil, 0o600)
	list, err := Backups(vfs.OS(), dir)
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	for i, b := range list {
		if b.LSN != lsns[4-i] {
			t.Errorf("backup %d has LSN %d, want %d", i, b.LSN, lsns[4-i])
		}
		old, err := OpenBackup(vfs.OS(), dir, b, store)
		if err != nil {
			t.Fatal(err)
		}
		if n := old.Count(Memories); n != int64(5-i) {
			t.Errorf("%s has %d memories", b.Name, n)
		}
		_ = old.Release()
		if _, err := OpenBackup(vfs.OS(), dir, b, "other"); !errors.Is(err, table.ErrForeign) {
			t.Error(err)
		}
	}
}

// TestPython: any JSON parser can read the files, with the same result as ours.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	dir := t.TempDir()
	m := newModel()
	for i, id := range []string{"a", "a\x00\x1f\n\t", `"\`, "é😀\u2028", strings.Repeat("\x01", 1024)} {
		m.put(i%2, id, "s\x00", t0, []string{"a", "é\x00"}[:i%2*2]...)
	}
	if _, err := WriteBase(Empty(8), target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
		t.Fatal(err)
	}
	const script = `import json,sys
d=json.load(open(sys.argv[1],encoding="utf-8"))
assert list(d)==["memories","assemblies","by_session","by_expiry","members","by_member","metadata","end"],list(d)
assert d["metadata"]["memory_count"]==len(d["memories"])==3
assert d["metadata"]["assembly_count"]==len(d["assemblies"])==2
assert "a\x00\x1f\n\t" in d["assemblies"] and '"\\' in d["memories"] and "\x01"*1024 in d["memories"]
assert d["by_session"]["s\x01\x01\x00a"]==1
assert d["members"]["a\x01\x01\x1f\n\t\x00a"]==1 and d["by_member"]["a\x00a\x00\x1f\n\t"]==1
assert len(d["members"])==len(d["by_member"])==4
assert d["memories"]["a"]["size"]==1043`
	if out, err := exec.Command(python, "-c", script, filepath.Join(dir, BaseName)).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A delta is used only if from ≤ base.lsn < lsn.
func TestStaleDelta(t *testing.T) {
	dir := t.TempDir()
	m := newModel()
	m.put(Memories, "a", "", time.Time{})
	if _, err := WriteBase(Empty(8), target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
		t.Fatal(err)
	}
	old, _ := os.ReadFile(filepath.Join(dir, BaseName))
	s, _ := Load(vfs.OS(), dir, Want{Store: store}, nil)
	m.del(Memories, "a")
	if _, err := WriteDelta(s, target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
		t.Fatal(err)
	}
	_ = s.Release()
	delta, _ := os.ReadFile(filepath.Join(dir, DeltaName))
	s, _ = Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn}, nil)
	m.put(Memories, "a", "", time.Time{})
	if _, err := WriteBase(s, target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
		t.Fatal(err)
	}
	_ = s.Release()
	// The delta is there again, as if its removal had not become durable (failure 19).
	_ = os.WriteFile(filepath.Join(dir, DeltaName), delta, 0o600)
	s, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.check(t, s)
	_ = s.Release()
	// An older base under a newer delta lacks the changes between them.
	_ = os.Remove(filepath.Join(dir, DeltaName))
	_ = os.WriteFile(filepath.Join(dir, BaseName), old, 0o600)
	if _, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn}, nil); !errors.Is(err, table.ErrBehind) {
		t.Error(err)
	}
	_ = os.Remove(filepath.Join(dir, BaseName))
	if _, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: m.lsn, Start: 8}, nil); !errors.Is(err, table.ErrBehind) {
		t.Error(err)
	}
	if s, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: 8, Start: 8}, nil); err != nil || s.LSN() != 8 {
		t.Error(s, err)
	}
	_ = os.WriteFile(filepath.Join(dir, BaseName), nil, 0o600)
	if _, err := Load(vfs.OS(), dir, Want{Store: store, Spilled: 8, Start: 8}, nil); !errors.Is(err, errs.ErrCorrupt) {
		t.Error(err)
	}
}

// Tables of many blocks: runs that are copied, deltas over them, merges.
func TestManyBlocks(t *testing.T) {
	proofs.OneGoroutine(t)
	dir := t.TempDir()
	m := newModel()
	s := Empty(8)
	for round := range 6 {
		for i := range 4000 {
			if k := (i*7919 + round*104729) % 9973; round == 0 || k%(3+round*40) == 0 {
				if id := fmt.Sprintf("id-%d", k); k%5 == round {
					m.del(k%2, id)
				} else {
					m.put(k%2, id, fmt.Sprint("s", k%7), t0.Add(time.Duration(k%100)*time.Second))
				}
			}
		}
		round := []func(*Set, Target, Changes) (Written, error){WriteBase, WriteDelta, WriteDelta}[round%3]
		if s.Base() == nil {
			round = WriteBase
		}
		s = write(t, vfs.OS(), dir, m, s, round)
		m.check(t, s)
	}
	if s.Base().Size() < 10*64<<10 {
		t.Error("too small to say anything: ", s.Base().Size())
	}
	_ = s.Release()
}

func BenchmarkWriteBase(b *testing.B) {
	dir := b.TempDir()
	m := newModel()
	for i := range *entries {
		m.put(Memories, fmt.Sprintf("%08x", uint32(i)*2654435761), fmt.Sprint("s", i%1000), time.Time{})
	}
	if _, err := WriteBase(Empty(8), target(vfs.OS(), dir, m.lsn), m.take()); err != nil {
		b.Fatal(err)
	}
	for i := range *entries / 10 {
		m.put(Memories, fmt.Sprintf("%08x", uint32(i*10)*2654435761), fmt.Sprint("s", i%999), time.Time{})
	}
	ch := m.take()
	for b.Loop() {
		s, err := Load(vfs.OS(), dir, Want{Store: store}, nil)
		if err != nil {
			b.Fatal(err)
		}
		m.lsn += 8
		w, err := WriteBase(s, target(vfs.OS(), dir, m.lsn), ch)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(w.Size)
		_ = s.Release()
	}
}
