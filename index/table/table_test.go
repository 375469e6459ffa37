package table

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

const store = "018f3c2e-1a2b-7000-8000-000000000001"

func dead(v []byte) bool { return string(v) == "0" }

func testSchema() *Schema {
	return &Schema{Name: "t", Sections: []Section{
		{Name: "ids", Count: "id_count", Dead: dead}, {Name: "more", Dead: dead},
	}}
}

type sliceEdits struct {
	keys, values []string
}

func (e *sliceEdits) Next() (key, value []byte, ok bool, err error) {
	if len(e.keys) == 0 {
		return nil, nil, false, nil
	}
	key, value = []byte(e.keys[0]), []byte(e.values[0])
	e.keys, e.values = e.keys[1:], e.values[1:]
	return key, value, true, nil
}

// edits sorts a plain map into edits for section 0.
func edits(t testing.TB, m map[string]string) Plan {
	t.Helper()
	e := &sliceEdits{}
	values := map[string]string{}
	for k, v := range m {
		enc, err := EncodeKey(k)
		if err != nil {
			t.Fatal(err)
		}
		e.keys, values[enc] = append(e.keys, enc), v
	}
	slices.Sort(e.keys)
	for _, k := range e.keys {
		e.values = append(e.values, values[k])
	}
	return Plan{Edits: func(sec int) (Edits, error) {
		if sec == 0 {
			return e, nil
		}
		return &sliceEdits{}, nil
	}}
}

func target(fsys vfs.FS, dir string, lsn uint64) Target {
	return Target{FS: fsys, Dir: dir, Temp: filepath.Join(dir, "temp"), Meta: Meta{
		Store: store, LSN: lsn, Updated: time.Unix(1767323045, 6000),
	}}
}

func load(t testing.TB, dir string, spilled uint64) *Set {
	t.Helper()
	s, err := Load(vfs.OS(), dir, testSchema(), Want{Store: store, Spilled: spilled}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Release() })
	return s
}

// build writes a base and returns its bytes.
func build(t testing.TB, dir string, m map[string]string, lsn uint64) []byte {
	t.Helper()
	if _, err := WriteBase(Empty(testSchema(), 0), target(vfs.OS(), dir, lsn), edits(t, m)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "t.json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// memFS has files that are only read.
type memFS struct {
	vfs.FS
	files map[string][]byte
}

type memFile struct {
	vfs.File
	b []byte
}

func (m memFS) OpenFile(name string, _ int, _ fs.FileMode) (vfs.File, error) {
	b, ok := m.files[filepath.Base(name)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return memFile{b: b}, nil
}
func (f memFile) Map() (vfs.Mapping, error) { return f, nil }
func (f memFile) Stat() (vfs.Info, error)   { return vfs.Info{Size: int64(len(f.b))}, nil }
func (f memFile) Bytes() []byte             { return f.b }
func (f memFile) Close() error              { return nil }

var golden = `{"ids": {
"a":1,
"a b":2,
"a\"b":3
},"more": {
}
,"metadata": {"version":"1","last_updated":"2026-01-02T03:04:05.000006Z","id_count":3,"store":"` + store +
	`","from":0,"lsn":4096,"sections":{"ids":[10,35,3,3],"more":[47,47,0,0]},"blocks":"`

func TestForm(t *testing.T) {
	b := build(t, t.TempDir(), map[string]string{"a\"b": "3", "a": "1", "a b": "2"}, 4096)
	if !strings.HasPrefix(string(b), golden) {
		t.Errorf("got\n%s\nwant\n%s", b, golden)
	}
	rest := string(b[len(golden):])
	if len(rest) != 16+len(blocksTail)+44 || !strings.HasPrefix(rest[16:], blocksTail+endHead) {
		t.Errorf("the end is %q", rest)
	}
}

func TestKeys(t *testing.T) {
	for _, k := range []string{"", "a", "\x00", "a\x1fb", "\b\t\n\f\r", `\"`, "é\u2028😀", "\x7f", strings.Repeat("\x01", 1024)} {
		enc, err := EncodeKey(k)
		if err != nil {
			t.Fatal(err)
		}
		dec, ok := appendDecoded(nil, []byte(enc))
		if !ok || string(dec) != k {
			t.Errorf("%q is written %s and read %q, %v", k, enc, dec, ok)
		}
		if n := keyEnd([]byte(enc + `":1`)); n != len(enc) {
			t.Errorf("%q ends at %d, not %d", enc, n, len(enc))
		}
	}
	if _, err := EncodeKey("a\xff"); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("invalid UTF-8: %v", err)
	}
	for _, enc := range []string{`\`, `\x`, `\u0041`, `\u00`, `\u000a`, `\u001F`, "a\nb", `\/`, `"`} {
		if k, ok := appendDecoded(nil, []byte(enc)); ok {
			t.Errorf("%s read as %q", enc, k)
		}
	}
}

func TestCompareLine(t *testing.T) {
	keys := []string{"", " ", "!", "a", "a!", "a b", `a"`, `a\`, `a\"`, "a\\\\", "ab", "a\n", "~"}
	for _, a := range keys {
		for _, b := range keys {
			ea, _ := EncodeKey(a)
			eb, _ := EncodeKey(b)
			got, _ := compareLine([]byte(ea+`":1,`), []byte(eb))
			if want := strings.Compare(ea, eb); got != want {
				t.Errorf("%q and %q: %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestLastNewline(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	chars := []byte{'\n', 0x0b, 0x09, 0x8a, 0, 0xff, 0x0a ^ 1}
	for range 20000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = chars[r.IntN(len(chars)*3)%len(chars)]
			if r.IntN(3) > 0 {
				b[i] = chars[1+r.IntN(len(chars)-2)]
			}
		}
		if got, want := lastNewline(b), bytes.LastIndexByte(b, '\n'); got != want {
			t.Fatalf("%x: %d, want %d", b, got, want)
		}
	}
}

// idFamilies are the kinds of keys in stores.
var idFamilies = []struct {
	name string
	id   func(r *rand.Rand, i int) string
}{
	{"uuid4", func(r *rand.Rand, _ int) string { return uuidText(r.Uint64()&^0xf000|0x4000, r.Uint64()) }},
	{"uuid7/second", func(r *rand.Rand, _ int) string {
		return uuidText((0x018f3c2e1a2b+uint64(r.IntN(1000)))<<16|0x7000|uint64(r.IntN(4096)), r.Uint64()>>2|1<<63)
	}},
	{"uuid7/month", func(r *rand.Rand, _ int) string {
		return uuidText((0x018f3c2e1a2b+uint64(r.IntN(2592000000)))<<16|0x7000|uint64(r.IntN(4096)), r.Uint64()>>2|1<<63)
	}},
	{"counter", func(_ *rand.Rand, i int) string { return fmt.Sprintf("memory_%d", i) }},
	{"words", func(r *rand.Rand, i int) string {
		return words[r.IntN(len(words))] + words[r.IntN(len(words))] + fmt.Sprint(i%100)
	}},
	{"mixed", func(r *rand.Rand, i int) string {
		p := []string{"mem-", "user:alice/", "user:bob/", "note_", "", "2026-01-", "Ünï-"}[r.IntN(7)]
		return p + uuidText(r.Uint64(), r.Uint64())[:8+r.IntN(28)]
	}},
}

var words = strings.Fields("the of and to in that was his it with is for as had you not be on at by which have or from this him but all she they were my are me one their so an said them we who would been will no when there if more out up into do any your what has man could other than our some very time upon about may its only now like little then can made should did us such great before must two these")

func uuidText(hi, lo uint64) string {
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(hi>>(56-8*i)), byte(lo>>(56-8*i))
	}
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

const value = `{"filepath":"memories/550e8400-e29b-41d4-a716-446655440000.json","created_at":"2026-01-02T03:04:05.000006Z","updated_at":"2026-01-02T03:04:05.000006Z","quickrecal_score":0.85,"content_hash":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":1043,"mtime":1767323045000006,"version":17}`

func family(t testing.TB, dir string, n, k int) (ids []string) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	m := make(map[string]string, n)
	for i := range n {
		m[idFamilies[k].id(r, i)] = value
	}
	build(t, dir, m, 4096)
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// TestProbes limits the number of lines that a search reads.
func TestProbes(t *testing.T) {
	proofs.OneGoroutine(t)
	limits := []float64{7, 7, 7, 10, 19, 13}
	for k, f := range idFamilies {
		dir := t.TempDir()
		ids := family(t, dir, 50_000, k)
		s := load(t, dir, 0)
		sum, most := 0, 0
		for _, id := range ids {
			enc, _ := EncodeKey(id)
			at, err := s.base.find(0, []byte(enc))
			if err != nil || at.start == at.end {
				t.Fatalf("%s: %q is not found: %v", f.name, id, err)
			}
			sum, most = sum+at.probes, max(most, at.probes)
		}
		mean := float64(sum) / float64(len(ids))
		t.Logf("%-13s %d keys: %.1f lines a look-up, at most %d", f.name, len(ids), mean, most)
		if mean > limits[k] || most > 40 {
			t.Errorf("%s: %.1f lines a look-up, at most %d; the limits are %.0f and 40", f.name, mean, most, limits[k])
		}
	}
}

// syncing counts the syncs of its files.
type syncing struct {
	vfs.FS
	syncs int
}

type syncingFile struct {
	vfs.File
	of *syncing
}

func (s *syncing) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &syncingFile{f, s}, nil
}

func (f *syncingFile) Datasync() error {
	f.of.syncs++
	return f.File.Datasync()
}

// The final sync of a long table, and concurrent syncs of commits, do not wait for all of it.
func TestStreamed(t *testing.T) {
	fsys := &syncing{FS: crash.New().Process("test")}
	if err := fsys.Mkdir("/t", 0o700); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range 200_000 {
		all[fmt.Sprintf("k%06d", i)] = value
	}
	r, err := WriteBase(Empty(testSchema(), 0), target(fsys, "/t", 8), edits(t, all))
	if err != nil {
		t.Fatal(err)
	}
	if want := int(r.Size/(2<<20)) - 1; want < 1 || fsys.syncs < want {
		t.Errorf("%d syncs before the last in a table of %d bytes, want %d", fsys.syncs, r.Size, want)
	}
}
