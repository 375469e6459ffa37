package pack

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/varve-db/varve/errs"
)

// content is a file that a test packs.
type content struct {
	name  string
	mark  byte
	mtime time.Time
	data  []byte
	piece bool // written by Create
	drop  bool
}

func packed(t testing.TB, files []content) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{Store: [16]byte{1, 2}, LSN: 7, Chain: 9}, 2, anyName)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !f.piece {
			if err := w.Add(f.name, f.mark, f.mtime, f.data, sha256.Sum256(f.data)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		s, err := w.Create(f.name, f.mark, f.mtime)
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(f.data, 300<<10) {
			if _, err := s.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if f.drop {
			s.Drop()
		} else if n, sum, err := s.Commit(); err != nil || n != int64(len(f.data)) || sum != sha256.Sum256(f.data) {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func anyName(string) error { return nil }

func open(b []byte) (*Reader, error) {
	return Open(bytes.NewReader(b), int64(len(b)), "x.pack", anyName)
}

func mixed(seed uint64) (files []content) {
	r := rand.New(rand.NewPCG(seed, 1))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	for i := range 3000 {
		text := []byte(strings.Repeat(fmt.Sprint(`{"id":`, i, "}"), r.IntN(200)))
		files = append(files, content{name: fmt.Sprint("memories/", i, ".json"), mark: " *"[i%2],
			mtime: at.Add(time.Duration(i)), data: text})
	}
	for i, size := range []int{0, 1, BlockSize - 1, BlockSize, BlockSize + 1, 3 * BlockSize, 5*BlockSize + 77} {
		files = append(files, content{name: fmt.Sprint("large/", i), data: noise(size)},
			content{name: fmt.Sprint("wal/", i), data: noise(size), piece: true},
			content{name: fmt.Sprint("small/", i), data: noise(40)},
			content{name: fmt.Sprint("dropped/", i), data: noise(size), piece: true, drop: true})
	}
	return append(files, content{name: "backup.json", data: []byte("{}")})
}

// TestPacked verifies that every file comes back, by the list and by name, whole and by ranges.
func TestPacked(t *testing.T) {
	t.Parallel()
	files := mixed(1)
	b := packed(t, files)
	p, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Damage()) > 0 {
		t.Fatal(p.Damage())
	}
	if h := p.Header(); h != (Header{Store: [16]byte{1, 2}, LSN: 7, Chain: 9}) {
		t.Errorf("%+v", h)
	}
	kept := slices.DeleteFunc(slices.Clone(files), func(f content) bool { return f.drop })
	n := 0
	for f, err := range p.All() {
		if err != nil {
			t.Fatal(err)
		}
		want := kept[n]
		n++
		if f.Name != want.name || f.Mark != want.mark || !f.Mtime.Equal(want.mtime) || f.Size != int64(len(want.data)) ||
			f.Sum != sha256.Sum256(want.data) {
			t.Fatalf("%+v is not %s", f, want.name)
		}
		again, err := p.Lookup(f.Name)
		if err != nil || again != f {
			t.Fatal(again, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(p.Body(f), 0, 1<<40))
		if err != nil || !bytes.Equal(got, want.data) {
			t.Fatalf("%s: %d bytes, %v", f.Name, len(got), err)
		}
		if len(want.data) > 2 {
			at := len(want.data) / 2
			part := make([]byte, min(1000, len(want.data)-at))
			if k, err := p.Body(f).ReadAt(part, int64(at)); k != len(part) || !bytes.Equal(part, want.data[at:at+k]) {
				t.Fatal(f.Name, k, err)
			}
		}
	}
	if n != len(kept) || p.Files() != n {
		t.Errorf("%d files, %d expected", n, len(kept))
	}
	if _, err := p.Lookup("dropped/3"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// counter counts the bytes that are read.
type counter struct {
	io.ReaderAt
	n int64
}

func (c *counter) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, off)
	c.n += int64(n)
	return n, err
}

// TestOneFile verifies that one file is read without the bodies of the others.
func TestOneFile(t *testing.T) {
	t.Parallel()
	b := packed(t, mixed(2))
	c := &counter{ReaderAt: bytes.NewReader(b)}
	p, err := Open(c, int64(len(b)), "x", anyName)
	if err != nil {
		t.Fatal(err)
	}
	if c.n > int64(len(b))/20 {
		t.Errorf("%d of %d bytes read to open it", c.n, len(b))
	}
	c.n = 0
	f, err := p.Lookup("small/5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Body(f).ReadAt(make([]byte, f.Size), 0); err != nil {
		t.Fatal(err)
	}
	if c.n > 3*BlockSize {
		t.Errorf("%d bytes read for one file", c.n)
	}
}

// TestEveryByteMatters verifies that a wrong byte anywhere, and a cut anywhere, is found, and costs only what it is in.
func TestEveryByteMatters(t *testing.T) {
	t.Parallel()
	files := mixed(3)[:60]
	files = append(files, content{name: "wal/1", data: bytes.Repeat([]byte("log "), 600<<10), piece: true},
		content{name: "backup.json", data: []byte("{}")})
	b := packed(t, files)
	faulty := func(b []byte) (opened, found bool) {
		p, err := open(b)
		if err != nil {
			if !errors.Is(err, errs.ErrCorrupt) {
				t.Fatal(err)
			}
			return false, true
		}
		found = len(p.Damage()) > 0
		names := 0
		for f, err := range p.All() {
			if err != nil {
				t.Fatal(err)
			}
			names++
			got, err := io.ReadAll(io.NewSectionReader(p.Body(f), 0, f.Size))
			if err != nil && !errors.Is(err, errs.ErrCorrupt) {
				t.Fatal(err)
			}
			if err == nil && sha256.Sum256(got) != f.Sum {
				t.Fatalf("%s is wrong, and no checksum says so", f.Name)
			}
			found = found || err != nil
		}
		return names == len(files), found
	}
	if opened, found := faulty(b); !opened || found {
		t.Fatal("the copy itself is damaged")
	}
	lost := 0
	for at := 0; at < len(b); at += 3 {
		c := slices.Clone(b)
		c[at] ^= 1 << (at % 8)
		opened, found := faulty(c)
		if !found {
			t.Errorf("a wrong byte at %d is not found", at)
		}
		if !opened {
			lost++
		}
	}
	p, _ := open(b)
	t.Logf("%d of %d bytes cost the list", 3*lost, len(b))
	if listSize := len(b) - int(p.starts[len(p.plain)]); 3*lost > listSize+3*headerSize {
		t.Errorf("%d bytes cost the list, which has only %d", 3*lost, listSize)
	}
	for cut := 0; cut < len(b); cut += 5 {
		if _, found := faulty(b[:cut]); !found {
			t.Errorf("a cut to %d bytes is not found", cut)
		}
	}
	if _, found := faulty(append(slices.Clone(b), 0)); !found {
		t.Error("a byte too many is not found")
	}
}

// parts are those of a packed copy, to forge one.
type parts struct {
	header []byte
	bodies [][]byte // head and packed bytes
	list   []byte   // plain
	table  []byte   // plain
	t      trailer
}

func taken(t testing.TB, b []byte) *parts {
	p, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	f := &parts{header: b[:headerSize]}
	for i := range p.plain {
		f.bodies = append(f.bodies, b[p.starts[i]:p.starts[i+1]])
	}
	if f.t, err = parseTrailer(b[len(b)-trailerSize:], int64(len(b))); err != nil {
		t.Fatal(err)
	}
	for at := f.t.list; at < f.t.table; {
		_, plain, next, _ := p.block(at, listBlock, nil)
		f.list, at = append(f.list, plain...), next
	}
	_, f.table, _, err = p.block(f.t.table, tableBlock, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// signed assembles the parts and gives them valid checksums. It corrects the offsets of list and table unless fixed is
// set.
func (f *parts) signed(t testing.TB, fixed bool) []byte {
	enc, _ := newEncoder(1)
	dec, _ := newDecoder(1)
	defer dec.Close()
	out := slices.Clone(f.header)
	le.PutUint64(out[56:], xxhash.Sum64(out[:56]))
	header := xxhash.Sum64(out)
	for _, b := range f.bodies {
		b = slices.Clone(b)
		le.PutUint64(b[16:], blockSum(b[:blockHead], b[blockHead:]))
		out = append(out, b...)
	}
	tr := f.t
	list := len(out)
	var err error
	if len(f.list) > 0 {
		if out, err = appendBlock(out, listBlock, f.list, enc, dec); err != nil {
			t.Fatal(err)
		}
	}
	table := len(out)
	if len(f.table) > 0 {
		if out, err = appendBlock(out, tableBlock, f.table, enc, dec); err != nil {
			t.Fatal(err)
		}
	}
	tr.sum, tr.header = sha256.Sum256(out[list:]), header
	if !fixed {
		tr.list, tr.table, tr.size = int64(list), int64(table), int64(len(out)+trailerSize)
	}
	return append(out, tr.encode()...)
}

// readAll opens a forged copy and reads all of it. It fails if that is not refused as damage, or does not end.
func readAll(t testing.TB, b []byte) error {
	p, err := open(b)
	if err != nil {
		if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNewerFormat) {
			t.Fatal(err)
		}
		return err
	}
	total := int64(0)
	seen := map[string]bool{}
	for f, err := range p.All() {
		if err != nil {
			t.Fatal(err)
		}
		if seen[f.Name] {
			t.Fatalf("%s twice", f.Name)
		}
		seen[f.Name] = true
		n, err := io.Copy(io.Discard, io.NewSectionReader(p.Body(f), 0, f.Size))
		if err != nil && !errors.Is(err, errs.ErrCorrupt) || err == nil && n != f.Size {
			t.Fatal(f.Name, n, f.Size, err)
		}
		if total += f.Size; total > int64(len(p.plain))*BlockSize {
			t.Fatalf("files of %d bytes in %d blocks", total, len(p.plain))
		}
		if again, err := p.Lookup(f.Name); err != nil || again != f {
			t.Fatal(f.Name, err)
		}
	}
	return errors.Join(p.Damage()...)
}

// FuzzSigned changes a copy and gives it valid checksums again. The copy must be refused or read, in bounded time.
func FuzzSigned(f *testing.F) {
	files := mixed(4)[:40]
	files = append(files, content{name: "wal/1", data: bytes.Repeat([]byte("log "), 300<<10), piece: true},
		content{name: "backup.json", data: []byte("{}")})
	whole := packed(f, files)
	f.Add(uint8(0), uint32(8), byte(2), uint32(0), byte(0))
	f.Add(uint8(1), uint32(8), byte(255), uint32(40), byte(1))
	f.Add(uint8(2), uint32(30), byte(255), uint32(31), byte(255))
	f.Add(uint8(3), uint32(1), byte(128), uint32(0), byte(1))
	f.Add(uint8(4), uint32(7), byte(127), uint32(16), byte(3))
	f.Fuzz(func(t *testing.T, part uint8, at1 uint32, x1 byte, at2 uint32, x2 byte) {
		p := taken(t, whole)
		change := func(b []byte) []byte {
			b = slices.Clone(b)
			b[int(at1)%len(b)] ^= x1
			b[int(at2)%len(b)] ^= x2
			return b
		}
		switch part % 5 {
		case 0:
			p.header = change(p.header)
		case 1:
			i := int(at1) % len(p.bodies)
			p.bodies[i] = change(p.bodies[i])
		case 2:
			p.list = change(p.list)
		case 3:
			p.table = change(p.table)
		case 4:
			b := p.signed(t, false)
			end := change(b[len(b)-trailerSize : len(b)-16])
			end = le.AppendUint64(end, xxhash.Sum64(end))
			b = append(append(b[:len(b)-trailerSize], end...), endMagic...)
			_ = readAll(t, b)
			return
		}
		_ = readAll(t, p.signed(t, false))
	})
}

// FuzzBytes reads arbitrary bytes.
func FuzzBytes(f *testing.F) {
	f.Add(packed(f, mixed(5)[:5]))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) { _ = readAll(t, b) })
}

// TestForged verifies that impossible values are refused although the checksums are right.
func TestForged(t *testing.T) {
	t.Parallel()
	whole := packed(t, []content{{name: "memories/a.json", data: []byte("aaa")},
		{name: "memories/b.json", data: []byte("bbb")}, {name: "backup.json", data: []byte("{}")}})
	entries := func(files ...File) (b []byte) {
		for i := range files {
			b = appendEntry(b, &files[i])
		}
		return b
	}
	enc, _ := newEncoder(1)
	bomb := func(plain int, declared uint32) []byte {
		packed := enc.EncodeAll(make([]byte, plain), nil)
		head := make([]byte, blockHead)
		copy(head, bodyBlock)
		le.PutUint32(head[4:], uint32(len(packed)))
		le.PutUint32(head[8:], declared)
		return append(head, packed...)
	}
	twice := func() []byte { // two frames in one block
		b := bomb(BlockSize, BlockSize)
		b = append(b, b[blockHead:]...)
		le.PutUint32(b[4:], uint32(len(b)-blockHead))
		return b
	}
	one := func(name string, offset int) File { return File{Name: name, Size: 1, offset: offset} }
	three := func(name string, offset int) File { return File{Name: name, Size: 3, offset: offset} }
	for name, forge := range map[string]func(p *parts){
		"a name twice":         func(p *parts) { p.list = entries(one("x", 0), one("x", 1)) },
		"two share a byte":     func(p *parts) { p.list = entries(three("x", 0), three("y", 2)) },
		"backwards":            func(p *parts) { p.list = entries(one("x", 3), one("y", 0)) },
		"longer than it is":    func(p *parts) { p.list = entries(File{Name: "x", Size: 1 << 40}) },
		"longer than a block":  func(p *parts) { p.list = entries(File{Name: "x", Size: 9}) },
		"behind the end":       func(p *parts) { p.list = entries(File{Name: "x", Size: 1, block: 1}) },
		"offset behind":        func(p *parts) { p.list = entries(File{Name: "x", Size: 1, offset: 100}) },
		"a name of nothing":    func(p *parts) { p.list = append([]byte{0}, p.list...) },
		"half an entry":        func(p *parts) { p.list = p.list[:len(p.list)-1] },
		"a bomb":               func(p *parts) { p.bodies[0] = bomb(64<<20, BlockSize) },
		"a bomb of little":     func(p *parts) { p.bodies[0] = bomb(64<<20, 8) },
		"two frames":           func(p *parts) { p.bodies[0] = twice() },
		"declared too long":    func(p *parts) { p.bodies[0] = bomb(8, 1<<31) },
		"another body":         func(p *parts) { p.bodies[0] = bomb(9, 9) },
		"a table of nothing":   func(p *parts) { p.table = []byte{0, 0} },
		"a table of more":      func(p *parts) { p.table = append(p.table, p.table...) },
		"fewer files":          func(p *parts) { p.t.files-- },
		"more bytes":           func(p *parts) { p.t.bytes++ },
		"a list of zeros only": func(p *parts) { p.list = make([]byte, BlockSize) },
	} {
		t.Run(name, func(t *testing.T) {
			p := taken(t, whole)
			before := slices.Clone(p.list)
			forge(p)
			if !bytes.Equal(p.list, before) { // the trailer agrees with the list
				p.t.files, p.t.bytes = 0, 0
				for at := 0; at < len(p.list); {
					var f File
					n := parseEntry(p.list[at:], &f)
					if n == 0 {
						break
					}
					p.t.files, p.t.bytes, at = p.t.files+1, min(p.t.bytes+f.Size, BlockSize), at+n
				}
			}
			if err := readAll(t, p.signed(t, false)); name != "another body" && !errors.Is(err, errs.ErrCorrupt) &&
				!strings.Contains(name, "bomb") && name != "two frames" && name != "declared too long" {
				t.Errorf("believed: %v", err)
			}
		})
	}
	// The body is read, and refused.
	for _, b := range [][]byte{bomb(64<<20, BlockSize), bomb(64<<20, 8), twice(), bomb(8, 1<<31)} {
		p := taken(t, whole)
		p.bodies[0] = b
		r, err := open(p.signed(t, false))
		if err != nil {
			continue
		}
		f, err := r.Lookup("memories/a.json")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := r.Body(f).ReadAt(make([]byte, 3), 0); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%d bytes of a bomb, %v", n, err)
		}
	}
	if _, err := Open(bytes.NewReader(whole), int64(len(whole)), "x", func(name string) error {
		if name == "memories/b.json" {
			return errors.New("not this")
		}
		return nil
	}); !errors.Is(err, errs.ErrCorrupt) || !strings.Contains(err.Error(), "not this") {
		t.Error(err)
	}
	newer := taken(t, whole)
	newer.header = slices.Clone(newer.header)
	newer.header[8]++
	if _, err := open(newer.signed(t, false)); !errors.Is(err, errs.ErrNewerFormat) {
		t.Error(err)
	}
}

// full fails once a number of bytes was written.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errs.ErrDiskFull
	}
	return len(b), nil
}

// TestWriterFails verifies that an error of the writer below is returned, wherever it happens.
func TestWriterFails(t *testing.T) {
	t.Parallel()
	files := mixed(6)
	size := len(packed(t, files))
	for left := 0; left < size; left += size / 37 {
		w, err := NewWriter(&full{left}, Header{}, 2, anyName)
		for _, f := range files {
			if err == nil {
				err = w.Add(f.name, f.mark, f.mtime, f.data, sha256.Sum256(f.data))
			}
		}
		if w != nil {
			err = errors.Join(err, w.Close())
		}
		if !errors.Is(err, errs.ErrDiskFull) {
			t.Fatalf("after %d of %d bytes: %v", left, size, err)
		}
	}
}

// TestWriterMisused verifies that files of an unknown size are ended before the next begins.
func TestWriterMisused(t *testing.T) {
	t.Parallel()
	w, err := NewWriter(io.Discard, Header{}, 1, anyName)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Create("a", 0, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add("b", 0, time.Time{}, nil, [32]byte{}); !errors.Is(err, errs.ErrInvalid) {
		t.Error(err)
	}
	if err := w.Add("", 0, time.Time{}, nil, [32]byte{}); !errors.Is(err, errs.ErrInvalid) {
		t.Error(err)
	}
	if _, _, err := s.Commit(); err != nil {
		t.Error(err)
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Add("c", 0, time.Time{}, nil, [32]byte{}); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

// TestWriterRefusesNames verifies that the writer refuses a name that the reader would refuse, and one that the copy
// has already.
func TestWriterRefusesNames(t *testing.T) {
	t.Parallel()
	valid := func(name string) error {
		if strings.HasPrefix(name, "no/") {
			return errors.New("not this")
		}
		return nil
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{}, 2, valid)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string) error {
		s, err := w.Create(name, ' ', time.Time{})
		if err == nil {
			_, _, err = s.Commit()
		}
		return errors.Join(err, w.Add(name+"+", ' ', time.Time{}, nil, sha256.Sum256(nil)))
	}
	const files = 30000 // more than a block of the list has
	for i := range files {
		if err := add(fmt.Sprint("f/", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.lists) == 0 {
		t.Fatal("the list has one block")
	}
	for _, name := range []string{"no/1", "f/0", "f/3+", fmt.Sprint("f/", files-1)} {
		if _, err := w.Create(name, ' ', time.Time{}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("creating %s: %v", name, err)
		}
		if err := w.Add(name, ' ', time.Time{}, nil, [32]byte{}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("adding %s: %v", name, err)
		}
	}
	s, err := w.Create("dropped", ' ', time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	s.Drop()
	if err := add("dropped"); err != nil { // a file that was given up is not in the copy
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()), "x", valid)
	if err != nil || len(p.Damage()) > 0 || p.Files() != 2*files+2 {
		t.Fatal(p, err)
	}
}

// TestListBomb verifies that a list of far more names than the copy has room for is refused at its first block: names
// that are the same, names that are repeated in each block, and a list longer than the trailer says.
func TestListBomb(t *testing.T) {
	t.Parallel()
	enc, _ := newEncoder(1)
	dec, _ := newDecoder(1)
	defer dec.Close()
	forged := func(files int64, blocks, entries int, name func(i int) string) []byte {
		var plain []byte
		for i := range entries {
			plain = appendEntry(plain, &File{Name: name(i)})
		}
		block, err := appendBlock(nil, listBlock, plain, enc, dec)
		if err != nil {
			t.Fatal(err)
		}
		h := Header{}
		b := h.encode()
		header := xxhash.Sum64(b)
		list := bytes.Repeat(block, blocks)
		b = append(b, list...)
		if files == 0 { // no trailer
			return b
		}
		tr := trailer{list: headerSize, table: int64(len(b)), files: files, size: int64(len(b) + trailerSize),
			header: header, sum: sha256.Sum256(list)}
		return append(b, tr.encode()...)
	}
	same := func(int) string { return "memories/x.json" }
	short := func(i int) string { return fmt.Sprint(i) }
	for what, b := range map[string][]byte{
		"one name":                      forged(100<<10, 2000, 1000, same),
		"one name, without a trailer":   forged(0, 2000, 1000, same),
		"more files than the trailer's": forged(10, 200, 1000, short),
	} {
		c := &counter{ReaderAt: bytes.NewReader(b)}
		if _, err := Open(c, int64(len(b)), "x", anyName); !errors.Is(err, errs.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		if c.n > int64(len(b))/20 {
			t.Errorf("%s: %d of %d bytes were read before it was refused", what, c.n, len(b))
		}
	}
}
