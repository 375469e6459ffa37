package pack

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/errs"
)

// cached is the maximum number of blocks of file contents that a Reader keeps decompressed in memory.
const cached = 4

// Reader reads a packed copy. Its methods may be called concurrently.
type Reader struct {
	r      io.ReaderAt
	size   int64
	name   string
	header Header
	damage []error

	starts []int64 // offsets of the blocks of bodies, and of the end of the last one
	plain  []int   // number of decompressed bytes of each of these blocks
	full   []int   // for each block, the number of consecutive full blocks from it on
	lists  []listed
	seed   maphash.Seed   // of the hashes of names: nobody can choose names of the same hash
	refs   []ref          // entries of the list, by hash of the name
	most   int64          // maximum number of files
	seen   map[uint64]int // while the list is read: offsets in the block by hash
	bytes  int64
	last   struct{ block, offset int } // end of the last file in the list

	decoders sync.Pool
	mu       sync.Mutex
	blocks   map[int][]byte // decompressed blocks of bodies
	recent   []int          // their numbers, the most recently read last
	bad      map[int]error  // damaged blocks
	page     []byte         // the block of the list that was last read
	paged    int            // number of that block + 1
}

// listed describes a block of the list of files: its offset in the packed copy, and the number of its decompressed
// bytes.
type listed struct {
	at    int64
	plain int
}

// ref locates an entry of the list of files: the number of the block of the list, and the offset in the decompressed
// block. hash is the hash of the entry's name.
type ref struct {
	hash uint64
	page int32
	at   int32
}

// Is reports whether b, the first bytes of a file, are those of a packed copy.
func Is(b []byte) bool { return len(b) >= len(magic) && string(b[:len(magic)]) == magic }

// Open reads the header and the list. valid returns an error for a name that a copy cannot have. name is that of the
// packed copy, for errors.
//
// Damage in the parts that Open reads is an error only if nothing can be read: see Damage.
func Open(r io.ReaderAt, size int64, name string, valid func(name string) error) (*Reader, error) {
	p := &Reader{r: r, size: size, name: name, seed: maphash.MakeSeed(), most: filesRatio * size, seen: map[uint64]int{},
		blocks: map[int][]byte{}, bad: map[int]error{}}
	p.decoders.New = func() any {
		d, err := newDecoder(1)
		if err != nil { // only wrong options fail
			return err
		}
		return d
	}
	head, err := p.read(0, headerSize)
	h, herr := parseHeader(head)
	if err != nil {
		if !errors.Is(err, errs.ErrCorrupt) {
			return nil, err
		}
		herr = err
	}
	if herr != nil && !errors.Is(herr, errs.ErrCorrupt) {
		return nil, p.named(herr)
	}
	p.header = h
	end, err := p.read(size-trailerSize, trailerSize)
	t, terr := parseTrailer(end, size)
	if err != nil {
		if !errors.Is(err, errs.ErrCorrupt) {
			return nil, err
		}
		terr = err
	}
	if terr == nil && herr == nil && t.header != xxhash.Sum64(head) {
		terr = damaged(size-trailerSize, errors.New("the trailer belongs to another packed copy than the header"))
	}
	if herr != nil && terr != nil {
		return nil, p.named(herr)
	}
	for _, err := range []error{herr, terr} {
		p.note(err)
	}
	if terr != nil {
		t = trailer{list: -1}
	} else {
		p.most = t.files
	}
	if err := p.table(&t); err != nil {
		return nil, err
	}
	if err := p.list(&t, terr == nil, valid); err != nil {
		return nil, err
	}
	if len(p.refs) == 0 && len(p.damage) > 0 {
		return nil, p.damage[len(p.damage)-1]
	}
	return p, nil
}

// note records damage that does not prevent reading.
func (p *Reader) note(err error) {
	if err != nil && len(p.damage) < 100 {
		p.damage = append(p.damage, p.named(err))
	}
}

// named adds the name of the packed copy to an error.
func (p *Reader) named(err error) error {
	if c := (*errs.CorruptionError)(nil); errors.As(err, &c) && c.Path == "" {
		c.Path = p.name
	}
	if c := (*errs.NewerError)(nil); errors.As(err, &c) && c.Path == "" {
		c.Path = p.name
	}
	return err
}

// read returns the n bytes at offset off, or fewer at the end of the copy. If off is outside the copy, it returns
// nil.
func (p *Reader) read(off int64, n int) ([]byte, error) {
	if off < 0 || off >= p.size {
		return nil, nil
	}
	b := make([]byte, min(int64(n), p.size-off))
	k, err := p.r.ReadAt(b, off)
	if k == len(b) || errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s at byte %d: %w", p.name, off, err)
	}
	return b[:k], nil
}

// block reads the block at offset off and decompresses it into dst. It returns the raw bytes of the block, the
// decompressed bytes, and next, the offset of the byte after the block. next is 0 if the head of the block is
// unreadable or the file is cut off within the block. Damage is a *errs.CorruptionError.
func (p *Reader) block(off int64, kind string, dst []byte) (raw, plain []byte, next int64, err error) {
	head, err := p.read(off, blockHead)
	if err != nil {
		return nil, nil, 0, err
	}
	packed, _, err := parseHead(head, kind, off)
	if err != nil {
		return nil, nil, 0, p.named(err)
	}
	next = off + int64(blockHead+packed)
	raw, err = p.read(off, blockHead+packed)
	if err != nil {
		return nil, nil, next, err
	}
	if len(raw) < blockHead+packed {
		return raw, nil, 0, p.named(damaged(off, errors.New("the file is cut off within a block")))
	}
	dec, ok := p.decoders.Get().(*zstd.Decoder)
	if !ok {
		return raw, nil, next, errors.New("the decompressor cannot be created")
	}
	defer p.decoders.Put(dec)
	plain, err = unpack(dec, raw[:blockHead], raw[blockHead:], dst, off)
	return raw, plain, next, p.named(err)
}

// table finds the blocks of bodies, which have the bytes of the files. It reads their sizes from the table. If the
// table is damaged, it instead follows the blocks from the first one on. It sets t.list and t.table if they are
// unknown.
func (p *Reader) table(t *trailer) error {
	if t.list >= 0 {
		err := p.byTable(t)
		if err == nil {
			p.runs()
			return nil
		}
		if !errors.Is(err, errs.ErrCorrupt) {
			return err
		}
		p.note(err)
		p.plain = p.plain[:0]
	}
	p.starts = append(p.starts[:0], headerSize)
	at := int64(headerSize)
	for t.list < 0 || at < t.list {
		head, err := p.read(at, blockHead)
		packed, plain, herr := parseHead(head, bodyBlock, at)
		if err == nil {
			err = herr
		} else if !errors.Is(err, errs.ErrCorrupt) {
			return err
		}
		if err != nil {
			if t.list >= 0 { // the list names blocks that cannot be found
				return p.named(err)
			}
			break
		}
		at += int64(blockHead + packed)
		p.starts, p.plain = append(p.starts, at), append(p.plain, plain)
	}
	if t.list < 0 {
		t.list, t.table = at, p.size
	}
	p.runs()
	return nil
}

func (p *Reader) byTable(t *trailer) error {
	at := int64(headerSize)
	p.starts = append(p.starts[:0], at)
	for off := t.table; off < p.size-trailerSize; {
		_, b, next, err := p.block(off, tableBlock, nil)
		if err != nil {
			return err
		}
		for len(b) > 0 {
			packed, n := binary.Uvarint(b)
			plain, m := binary.Uvarint(b[max(n, 0):])
			if n <= 0 || m <= 0 || packed == 0 || packed > packedMost || plain == 0 || plain > BlockSize {
				return p.named(damaged(off, errors.New("the table of blocks has impossible values")))
			}
			b = b[n+m:]
			if at += int64(blockHead + packed); at > t.list {
				return p.named(damaged(off, errors.New("the table of blocks lists more blocks than the file has")))
			}
			p.starts, p.plain = append(p.starts, at), append(p.plain, int(plain))
		}
		off = next
	}
	if at != t.list || int64(len(p.plain)) != t.blocks {
		return p.named(damaged(t.table, errors.New("the table of blocks does not list all blocks of the file")))
	}
	return nil
}

// runs computes p.full: for each block, the number of consecutive full blocks from that block on.
func (p *Reader) runs() {
	p.full = make([]int, len(p.plain)+1)
	for i := len(p.plain) - 1; i >= 0; i-- {
		if p.plain[i] == BlockSize {
			p.full[i] = p.full[i+1] + 1
		}
	}
}

// holds reports whether the blocks have all bytes of a file, and returns the end of the file as a number of a block and
// an offset.
func (p *Reader) holds(f *File) (block, offset int, ok bool) {
	switch {
	case f.Size == 0:
		return f.block, f.offset, f.block == 0 && f.offset == 0
	case f.block < 0 || f.block >= len(p.plain) || f.offset < 0 || f.offset >= p.plain[f.block]:
		return 0, 0, false
	case f.Size <= int64(p.plain[f.block]-f.offset):
		return f.block, f.offset + int(f.Size), true
	case f.offset != 0 || f.Size > int64(len(p.plain))*BlockSize:
		return 0, 0, false
	}
	last := f.block + int((f.Size-1)/BlockSize)
	rest := int(f.Size - int64(last-f.block)*BlockSize)
	if last >= len(p.plain) || p.full[f.block] < last-f.block || rest > p.plain[last] {
		return 0, 0, false
	}
	return last, rest, true
}

// list reads the list, and makes the index of the names. ended is false if the trailer, and with it the end of the
// list, is unknown.
func (p *Reader) list(t *trailer, ended bool, valid func(string) error) error {
	sum := sha256.New()
	var page []byte
	for at := t.list; at < t.table; {
		raw, b, next, err := p.block(at, listBlock, page)
		sum.Write(raw)
		switch {
		case err == nil:
			if err := p.enter(at, b, valid); err != nil {
				return p.named(err)
			}
			page = b
		case !errors.Is(err, errs.ErrCorrupt):
			return err
		case next != 0 || ended:
			p.note(err)
		}
		if next == 0 {
			break
		}
		at = next
	}
	p.seen = nil
	slices.SortFunc(p.refs, func(a, b ref) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.page, b.page), cmp.Compare(a.at, b.at))
	})
	if err := p.distinct(); err != nil || len(p.damage) > 0 {
		return err
	}
	for at := t.table; at < p.size-trailerSize; {
		raw, _, next, err := p.block(at, tableBlock, nil)
		if err != nil {
			return err
		}
		sum.Write(raw)
		at = next
	}
	if [sha256.Size]byte(sum.Sum(nil)) != t.sum || int64(len(p.refs)) != t.files || p.bytes != t.bytes {
		p.note(damaged(t.list, errors.New("the list of files does not match the checksum in the trailer")))
	}
	return nil
}

// enter adds the entries of a block of the list to the index. off is the offset of the block, and b has its
// decompressed bytes. valid returns an error for a name that a copy cannot have.
func (p *Reader) enter(off int64, b []byte, valid func(string) error) error {
	p.lists = append(p.lists, listed{at: off, plain: len(b)})
	clear(p.seen)
	for pos := 0; pos < len(b); {
		var f File
		n := parseEntry(b[pos:], &f)
		if n == 0 {
			return damaged(off, errors.New("an entry of the list of files is invalid"))
		}
		if err := valid(f.Name); err != nil {
			return damaged(off, fmt.Errorf("the list of files has %.200q, which cannot be the name of a file in a "+
				"copy: %w", f.Name, err))
		}
		block, offset, ok := p.holds(&f)
		if !ok || f.Size > 0 && (f.block < p.last.block || f.block == p.last.block && f.offset < p.last.offset) {
			return damaged(off, fmt.Errorf("the position of %.200q in the packed copy is impossible", f.Name))
		}
		if f.Size > 0 {
			p.last.block, p.last.offset = block, offset
		}
		hash := maphash.String(p.seed, f.Name)
		if before, ok := p.seen[hash]; ok {
			var same File
			if parseEntry(b[before:], &same); same.Name == f.Name {
				return damaged(off, fmt.Errorf("the list of files has %.200q twice", f.Name))
			}
		}
		p.seen[hash] = pos
		if int64(len(p.refs)) >= p.most {
			return damaged(off, fmt.Errorf("the list of files is too long: the limit is %d files", p.most))
		}
		p.refs = append(p.refs, ref{hash, int32(len(p.lists) - 1), int32(pos)})
		p.bytes += f.Size
		pos += n
	}
	return nil
}

// distinct returns an error if a name is twice in the list.
func (p *Reader) distinct() error {
	for i := 1; i < len(p.refs); i++ {
		if p.refs[i].hash != p.refs[i-1].hash {
			continue
		}
		var a, b File
		if err := errors.Join(p.entry(p.refs[i-1], &a), p.entry(p.refs[i], &b)); err != nil {
			return err
		}
		if a.Name == b.Name {
			return p.named(damaged(-1, fmt.Errorf("the list of files has %.200q twice", b.Name)))
		}
	}
	return nil
}

// entry reads into f the entry of the list to which r refers.
func (p *Reader) entry(r ref, f *File) error {
	b, err := p.pageOf(int(r.page))
	if err == nil && parseEntry(b[r.at:], f) == 0 {
		err = p.named(damaged(p.lists[r.page].at, errors.New("the list of files has changed since the packed copy "+
			"was opened")))
	}
	return err
}

// pageOf returns the decompressed block number i of the list. The result is never changed.
func (p *Reader) pageOf(i int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paged == i+1 {
		return p.page, nil
	}
	_, b, _, err := p.block(p.lists[i].at, listBlock, nil)
	if err == nil && len(b) != p.lists[i].plain {
		err = p.named(damaged(p.lists[i].at, errors.New("the list of files has changed since the packed copy was "+
			"opened")))
	}
	if err == nil {
		p.page, p.paged = b, i+1
	}
	return b, err
}

// Header returns the header; zero if it is damaged.
func (p *Reader) Header() Header { return p.header }

// Files returns the number of files.
func (p *Reader) Files() int { return len(p.refs) }

// Bytes returns the number of bytes of all files.
func (p *Reader) Bytes() int64 { return p.bytes }

// Damage returns damage of the header, the list and the trailer that does not prevent reading: files may be missing in
// the list.
func (p *Reader) Damage() []error { return p.damage }

// All yields the files in the order in which they were written.
func (p *Reader) All() iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for i := range p.lists {
			b, err := p.pageOf(i)
			if err != nil {
				yield(File{}, err)
				return
			}
			for at := 0; at < len(b); {
				var f File
				n := parseEntry(b[at:], &f)
				if n == 0 || !yield(f, nil) {
					return
				}
				at += n
			}
		}
	}
}

// Lookup returns the file with this name, or fs.ErrNotExist if the copy has no such file.
func (p *Reader) Lookup(name string) (f File, err error) {
	hash := maphash.String(p.seed, name)
	i, _ := slices.BinarySearchFunc(p.refs, hash, func(r ref, h uint64) int { return cmp.Compare(r.hash, h) })
	for ; i < len(p.refs) && p.refs[i].hash == hash; i++ {
		if err := p.entry(p.refs[i], &f); err != nil {
			return f, err
		}
		if f.Name == name {
			return f, nil
		}
	}
	return f, &fs.PathError{Op: "open", Path: p.name + "/" + name, Err: fs.ErrNotExist}
}

// Body returns a reader of the bytes of a file. It does not compare them with the file's sha256.
func (p *Reader) Body(f File) io.ReaderAt { return body{p, f} }

type body struct {
	p *Reader
	f File
}

// ReadAt implements io.ReaderAt.
func (b body) ReadAt(dst []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	for n < len(dst) {
		at := off + int64(n)
		if at >= b.f.Size {
			return n, io.EOF
		}
		from := int64(b.f.offset) + at
		plain, err := b.p.body(b.f.block + int(from/BlockSize))
		if err != nil {
			return n, err
		}
		part := plain[from%BlockSize:]
		n += copy(dst[n:], part[:min(int64(len(part)), b.f.Size-at)])
	}
	return n, nil
}

// body returns the decompressed block number i of the bodies, which are the bytes of the files. The result is never
// changed.
func (p *Reader) body(i int) ([]byte, error) {
	p.mu.Lock()
	b, err := p.blocks[i], p.bad[i]
	p.mu.Unlock()
	if b != nil || err != nil {
		return b, err
	}
	_, b, next, err := p.block(p.starts[i], bodyBlock, nil)
	if err == nil && (next != p.starts[i+1] || len(b) != p.plain[i]) {
		err = p.named(damaged(p.starts[i], errors.New("the size of the block differs from its size in the table of "+
			"blocks")))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if errors.Is(err, errs.ErrCorrupt) && len(p.bad) < 1000 {
			p.bad[i] = err
		}
		return nil, err
	}
	if p.blocks[i] == nil {
		p.recent = append(p.recent, i)
		if len(p.recent) > cached {
			delete(p.blocks, p.recent[0])
			p.recent = slices.Delete(p.recent, 0, 1)
		}
		p.blocks[i] = b
	}
	return b, nil
}

// Ends reports whether a file ends as a packed copy does. It recognizes also a packed copy whose beginning is damaged.
func Ends(r io.ReaderAt, size int64) bool {
	b := make([]byte, len(endMagic))
	n, _ := r.ReadAt(b, size-int64(len(b))) // a file that cannot be read is none
	return n == len(b) && string(b) == endMagic
}
