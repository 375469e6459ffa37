package table

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

var small = map[string]string{"a": "1", "a b": "12", `q"\`: `{"x":"y"}`, "\x01": "7", "é😀": "9", "zz": "3"}

// probe reads everything in small from a file with the bytes b, by look-up and in order. Every result
// without an error must be right.
func probe(t *testing.T, b []byte, what string) (refused bool) {
	t.Helper()
	fsys := memFS{files: map[string][]byte{"t.json": b}}
	s, err := Load(fsys, "", testSchema(), Want{Store: store, Spilled: 1}, nil)
	if err != nil {
		if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNewerFormat) && !errors.Is(err, ErrForeign) {
			t.Fatalf("%s: an error of another kind: %v", what, err)
		}
		return true
	}
	defer s.Release()
	for k, v := range small {
		got, ok, err := s.Get(nil, 0, k)
		if err != nil {
			refused = true
		} else if !ok || string(got) != v {
			t.Fatalf("%s: %q is %q, %v", what, k, got, ok)
		}
	}
	if _, ok, err := s.Get(nil, 0, "absent"); ok {
		t.Fatalf("%s: an absent key is there", what)
	} else if err != nil {
		refused = true
	}
	n := 0
	for it, err := range s.Range(0, Span{}) {
		if err != nil {
			refused = true
			break
		}
		if small[string(it.Key)] != string(it.Value) {
			t.Fatalf("%s: %q is %q", what, it.Key, it.Value)
		}
		n++
	}
	if !refused && n != len(small) {
		t.Fatalf("%s: %d of %d entries, and no error", what, n, len(small))
	}
	found := false
	for err := range s.base.Check() {
		found = true
		if !errors.Is(err, errs.ErrCorrupt) {
			t.Fatalf("%s: Check: %v", what, err)
		}
	}
	if !found {
		t.Fatalf("%s: Check finds nothing", what)
	}
	return refused
}

// Failures 11, 36: no damaged file is read as an empty or a smaller table.
func TestEveryBit(t *testing.T) {
	b := build(t, t.TempDir(), small, 4096)
	for i := range b {
		for bit := range 8 {
			c := bytes.Clone(b)
			c[i] ^= 1 << bit
			if !probe(t, c, "bit") {
				t.Fatalf("byte %d, bit %d: nobody noticed", i, bit)
			}
		}
	}
}

func TestEveryCut(t *testing.T) {
	b := build(t, t.TempDir(), small, 4096)
	for n := range b {
		if !probe(t, b[:n:n], "cut") {
			t.Fatalf("cut to %d bytes: nobody noticed", n)
		}
		zeros := append(bytes.Clone(b[:n]), make([]byte, len(b)-n)...)
		if !probe(t, zeros, "zeros") {
			t.Fatalf("zeros from byte %d: nobody noticed", n)
		}
	}
	if !probe(t, append(bytes.Clone(b), b...), "twice") {
		t.Fatal("a file written twice: nobody noticed")
	}
}

// Failure 25: another program truncates a mapped file.
func TestCutWhileMapped(t *testing.T) {
	dir := t.TempDir()
	ids := family(t, dir, 5000, 0)
	s := load(t, dir, 0)
	for _, id := range ids { // every block is known to be valid
		if _, ok, err := s.Get(nil, 0, id); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "t.json"), 123_457); err != nil {
		t.Skip("a mapped file cannot be cut here: ", err)
	}
	bad := 0
	for _, id := range ids {
		v, ok, err := s.Get(nil, 0, id)
		switch {
		case err != nil:
			bad++
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatal(err)
			}
		case !ok || string(v) != value:
			t.Fatalf("%q is %q, %v", id, v, ok)
		}
	}
	if bad == 0 {
		t.Error("no look-up noticed")
	}
	var last error
	for _, err := range s.Range(0, Span{}) {
		last = err
	}
	if !errors.Is(last, errs.ErrCorrupt) {
		t.Errorf("Range ends with %v", last)
	}
	_, err := WriteBase(s, target(vfs.OS(), dir, 8192), edits(t, nil))
	if !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("WriteBase: %v", err)
	}
}

// Bytes that are damaged after they were verified must not get a new, valid checksum.
func TestRewriteChecksAgain(t *testing.T) {
	dir := t.TempDir()
	b := build(t, dir, small, 4096)
	s := load(t, dir, 0)
	if _, ok, err := s.Get(nil, 0, "zz"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	at := bytes.Index(b, []byte(`"zz":3`)) + 5
	f, err := os.OpenFile(filepath.Join(dir, "t.json"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteAt([]byte("4"), int64(at))
	_ = f.Close()
	if v, _, _ := s.Get(nil, 0, "zz"); string(v) == "3" {
		t.Skip("the mapping is a copy here")
	}
	var bad *errs.CorruptionError
	if _, err := WriteBase(s, target(vfs.OS(), dir, 8192), edits(t, map[string]string{"new": "1"})); !errors.As(err, &bad) || bad.Path != "t.json" || bad.Offset != 0 {
		t.Errorf("got %v", err)
	}
}

func TestForeign(t *testing.T) {
	dir := t.TempDir()
	build(t, dir, small, 4096)
	_, err := Load(vfs.OS(), dir, testSchema(), Want{Store: "another"}, nil)
	if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "t.json") {
		t.Errorf("wrong store: %v", err)
	}
	if _, err := Load(vfs.OS(), dir, testSchema(), Want{Store: store, Spilled: 5000}, nil); !errors.Is(err, ErrBehind) {
		t.Errorf("behind: %v", err)
	}
	other := testSchema()
	other.Sections[1].Name = "else"
	if _, err := Load(vfs.OS(), dir, other, Want{Store: store}, nil); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("another schema: %v", err)
	}
	for _, text := range []string{"", "{}", "{}\n", "[]", strings.Repeat("x", 100)} {
		_ = os.WriteFile(filepath.Join(dir, "t.json"), []byte(text), 0o600)
		if _, err := Load(vfs.OS(), dir, testSchema(), Want{Store: store}, nil); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func sum(b []byte) uint64 { return xxhash.Sum64(b) }

func FuzzOpen(f *testing.F) {
	b := build(f, f.TempDir(), small, 4096)
	f.Add(b)
	f.Add(build(f, f.TempDir(), nil, 8))
	f.Add(build(f, f.TempDir(), map[string]string{"a": "1"}, 1<<60))
	f.Add(b[:len(b)-1])
	f.Add(b[:len(b)/2])
	f.Add(bytes.Replace(b, []byte("\n"), []byte("\r\n"), 1)) // as git may check it out
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resign(b)} {
			fsys := memFS{files: map[string][]byte{"t.json": b, "t.delta.json": b}}
			s, err := Load(fsys, "", testSchema(), Want{Store: store}, nil)
			if err != nil {
				continue
			}
			for range s.base.Check() {
			}
			for k := range small {
				_, _, _ = s.Get(nil, 0, k)
			}
			for range s.Range(0, Span{From: "a", Prefix: "a"}) {
			}
			for range s.Range(1, Span{}) {
			}
			_ = s.Release()
		}
	})
}

// resign gives a text the checksums of a table, so that fuzzing reaches the code behind the checks.
func resign(b []byte) []byte {
	at := bytes.LastIndex(b, []byte(`,"metadata": {`))
	end := bytes.LastIndex(b, []byte(`"blocks":"`))
	if at < 0 || end < at {
		return nil
	}
	out := bytes.Clone(b[:end+len(`"blocks":"`)])
	for lo := 0; lo < at; lo += blockSize {
		out = appendHash(out, sum(b[lo:min(at, lo+blockSize)]))
	}
	out = append(out, blocksTail...)
	hash := sum(out[at:])
	out = append(out, endHead...)
	out = appendHash(out, uint64(at))
	out = append(out, ' ')
	out = appendHash(out, hash)
	return append(out, endTail...)
}
