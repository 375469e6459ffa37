package pack

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/errs"
)

// Writer writes a packed copy from its beginning to its end. Other goroutines compress the blocks; the methods write
// the compressed blocks in order. The methods must not be called concurrently.
type Writer struct {
	w       io.Writer
	out     int64 // number of bytes written
	header  []byte
	workers int
	enc     *zstd.Encoder
	dec     *zstd.Decoder

	body    []byte   // the block that is being filled
	number  int      // number of that block, from 0
	pending []*block // blocks that are being compressed
	list    []byte   // the block of the list that is being filled
	lists   [][]byte // the blocks of the list, as they are written
	table   []byte
	valid   func(name string) error
	seed    maphash.Seed
	names   map[uint64]bool // hashes of the names in the list
	file    *stream         // the file that is being written piece by piece
	t       trailer
	err     error // the first error; everything after it fails
}

// block is a block of the copy that a goroutine compresses.
type block struct {
	plain int
	b     []byte
	err   error
	done  chan struct{}
}

// NewWriter returns a Writer that writes a packed copy to w, and writes the header. workers is the number of blocks
// that are compressed at the same time. valid returns an error for a name that a copy cannot have; give Open the same
// function.
func NewWriter(w io.Writer, h Header, workers int, valid func(name string) error) (*Writer, error) {
	enc, err := newEncoder(workers)
	if err != nil {
		return nil, err
	}
	dec, err := newDecoder(workers)
	if err != nil {
		return nil, err
	}
	pw := &Writer{w: w, workers: workers, enc: enc, dec: dec, header: h.encode(), valid: valid, seed: maphash.MakeSeed(),
		names: map[uint64]bool{}}
	pw.t.header = xxhash.Sum64(pw.header)
	pw.write(pw.header)
	return pw, pw.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	w.out += int64(n)
	w.err = err
}

// Add adds a file. sum is the sha256 of data. mtime may be zero. A time before the year 1679 or after 2261 cannot be
// stored, and is treated as zero.
func (w *Writer) Add(name string, mark byte, mtime time.Time, data []byte, sum [sha256.Size]byte) error {
	if err := w.ready(name); err != nil {
		return err
	}
	f := File{Name: name, Mark: mark, Mtime: mtime, Sum: sum}
	w.begin(&f, len(data))
	w.fill(data)
	f.Size = int64(len(data))
	return w.enter(&f)
}

func (w *Writer) ready(name string) error {
	switch {
	case w.err != nil:
		return w.err
	case w.file != nil:
		return fmt.Errorf("writing %s to a packed copy: %w: the previous file, %s, is not closed yet", name,
			errs.ErrInvalid, w.file.f.Name)
	case name == "" || len(name) > NameMost:
		return fmt.Errorf("writing to a packed copy: the name of a file has %d bytes, but must have 1 to %d: %w",
			len(name), NameMost, errs.ErrInvalid)
	}
	if err := w.valid(name); err != nil {
		return fmt.Errorf("writing %.200q to a packed copy: %w: %w", name, errs.ErrInvalid, err)
	}
	twice, err := w.contains(name)
	if err == nil && twice {
		err = fmt.Errorf("writing %.200q to a packed copy: %w: the copy already has a file of this name", name,
			errs.ErrInvalid)
	}
	return err
}

// contains reports whether a name is in the list. It reads the list only if the list has a name with the same hash.
func (w *Writer) contains(name string) (bool, error) {
	if !w.names[maphash.String(w.seed, name)] {
		return false, nil
	}
	for _, b := range w.lists {
		plain, err := unpack(w.dec, b[:blockHead], b[blockHead:], nil, -1)
		if err != nil {
			return false, err
		}
		if contains(plain, name) {
			return true, nil
		}
	}
	return contains(w.list, name), nil
}

// contains reports whether a sequence of encoded entries, such as a block of the list, has an entry with this name.
func contains(list []byte, name string) bool {
	for at := 0; at < len(list); {
		var f File
		n := parseEntry(list[at:], &f)
		if n == 0 || f.Name == name {
			return n > 0
		}
		at += n
	}
	return false
}

// begin sets in f the block and the offset at which a file of size bytes begins. If the file does not fit into the
// rest of the block that is being filled, begin first ends that block.
func (w *Writer) begin(f *File, size int) {
	if len(w.body) > 0 && size > BlockSize-len(w.body) {
		w.flush()
	}
	f.block, f.offset = w.number, len(w.body)
}

func (w *Writer) fill(data []byte) {
	for len(data) > 0 && w.err == nil {
		if w.body == nil {
			w.body = make([]byte, 0, BlockSize)
		}
		n := min(BlockSize-len(w.body), len(data))
		w.body = append(w.body, data[:n]...)
		data = data[n:]
		if len(w.body) == BlockSize {
			w.flush()
		}
	}
}

// flush passes the filled block to a goroutine that compresses it, and writes blocks that are ready.
func (w *Writer) flush() {
	if w.err != nil || len(w.body) == 0 {
		return
	}
	b := &block{plain: len(w.body), done: make(chan struct{})}
	plain := w.body
	go func() {
		defer close(b.done)
		b.b, b.err = appendBlock(nil, bodyBlock, plain, w.enc, w.dec)
	}()
	w.pending = append(w.pending, b)
	w.body = nil
	w.number++
	w.drain(w.workers)
}

// drain writes the oldest pending blocks until at most limit of them are left.
func (w *Writer) drain(limit int) {
	for len(w.pending) > limit && w.err == nil {
		b := w.pending[0]
		w.pending = w.pending[1:]
		<-b.done
		if w.err = b.err; w.err == nil {
			w.write(b.b)
			w.table = binary.AppendUvarint(w.table, uint64(len(b.b)-blockHead))
			w.table = binary.AppendUvarint(w.table, uint64(b.plain))
		}
	}
}

// enter adds the entry of a file to the list of files. If the entry does not fit into the block of the list that is
// being filled, enter ends this block and begins a new one.
func (w *Writer) enter(f *File) error {
	if w.err != nil {
		return w.err
	}
	if f.Size == 0 {
		f.block, f.offset = 0, 0
	}
	if y := f.Mtime.Year(); !f.Mtime.IsZero() && (y < 1679 || y > 2261) {
		f.Mtime = time.Time{}
	}
	w.names[maphash.String(w.seed, f.Name)] = true
	n := len(w.list)
	w.list = appendEntry(w.list, f)
	if len(w.list) > BlockSize {
		entry := append([]byte(nil), w.list[n:]...)
		w.list = w.list[:n]
		w.endList()
		w.list = append(w.list, entry...)
	}
	w.t.files++
	w.t.bytes += f.Size
	return w.err
}

func (w *Writer) endList() {
	if len(w.list) == 0 || w.err != nil {
		return
	}
	// An ordinary list never exceeds the ratio. One of empty files with a long common path may.
	for part := w.list; len(part) > 0 && w.err == nil; {
		n := wholeEntries(part, BlockSize)
		b, err := appendBlock(nil, listBlock, part[:n], w.enc, w.dec)
		for err == nil && n > listRatio*(len(b)-blockHead)+listFree {
			n = wholeEntries(part, n/2)
			b, err = appendBlock(nil, listBlock, part[:n], w.enc, w.dec)
		}
		w.lists, w.err = append(w.lists, b), err
		part = part[n:]
	}
	w.list = w.list[:0]
}

// wholeEntries returns the length of the longest beginning of the list b that consists of whole entries and has at
// most maxBytes bytes. If the first entry alone is longer, wholeEntries returns the length of that entry.
func wholeEntries(b []byte, maxBytes int) int {
	at := 0
	for at < len(b) {
		var f File
		n := parseEntry(b[at:], &f)
		if at > 0 && at+n > maxBytes {
			break
		}
		at += n
	}
	return at
}

// Create begins a file whose size is not known. The file must be ended by Commit or Drop before anything else is
// written.
func (w *Writer) Create(name string, mark byte, mtime time.Time) (Stream, error) {
	if err := w.ready(name); err != nil {
		return nil, err
	}
	s := &stream{w: w, f: File{Name: name, Mark: mark, Mtime: mtime}, sum: sha256.New()}
	w.begin(&s.f, math.MaxInt) // in a block of its own, so that all of its blocks are full
	w.file = s
	return s, nil
}

// Stream is a file that is written piece by piece.
type Stream interface {
	io.Writer
	Commit() (size int64, sum [sha256.Size]byte, err error) // adds the file to the list
	Drop()                                                  // leaves the file out
}

type stream struct {
	w   *Writer
	f   File
	sum hash.Hash
}

func (s *stream) Write(b []byte) (int, error) {
	if s.w.file != s {
		return 0, fmt.Errorf("writing to %s: %w", s.f.Name, fs.ErrClosed)
	}
	s.sum.Write(b)
	s.w.fill(b)
	s.f.Size += int64(len(b))
	return len(b), s.w.err
}

// Commit implements Stream.
func (s *stream) Commit() (int64, [sha256.Size]byte, error) {
	if s.w.file != s {
		return 0, s.f.Sum, fmt.Errorf("ending %s: %w", s.f.Name, fs.ErrClosed)
	}
	s.w.file = nil
	s.sum.Sum(s.f.Sum[:0])
	return s.f.Size, s.f.Sum, s.w.enter(&s.f)
}

// Drop implements Stream.
func (s *stream) Drop() {
	if s.w.file == s {
		s.w.file = nil
	}
}

// Close writes the list and the trailer. It does not close the io.Writer.
func (w *Writer) Close() error {
	defer func() {
		_ = w.enc.Close()
		w.dec.Close()
		if w.err == nil {
			w.err = fs.ErrClosed
		}
	}()
	if w.err == nil && w.file != nil {
		w.err = fmt.Errorf("ending a packed copy: %w: the last file, %s, is not closed yet", errs.ErrInvalid,
			w.file.f.Name)
	}
	w.flush()
	w.drain(0)
	for _, b := range w.pending { // after an error
		<-b.done
	}
	w.endList()
	sum := sha256.New()
	w.t.list, w.t.blocks = w.out, int64(w.number)
	for _, b := range w.lists {
		sum.Write(b)
		w.write(b)
	}
	w.t.table = w.out
	for at := 0; at < len(w.table) && w.err == nil; {
		n := wholePairs(w.table[at:], listFree) // a block of this size may compress by any ratio
		var b []byte
		if b, w.err = appendBlock(nil, tableBlock, w.table[at:at+n], w.enc, w.dec); w.err == nil {
			sum.Write(b)
			w.write(b)
		}
		at += n
	}
	w.t.size = w.out + trailerSize
	sum.Sum(w.t.sum[:0])
	w.write(w.t.encode())
	return w.err
}

// wholePairs returns the length of the longest beginning of a list of pairs of numbers that consists of whole pairs and
// has at most limit bytes.
func wholePairs(b []byte, limit int) int {
	at := 0
	for at < len(b) {
		n := 0
		for range 2 {
			_, k := binary.Uvarint(b[at+n:])
			n += k
		}
		if at+n > limit {
			break
		}
		at += n
	}
	return at
}

// Abort abandons the copy. It waits for the goroutines that compress.
func (w *Writer) Abort() {
	if w.err == nil {
		w.err = errors.New("writing the packed copy was abandoned")
	}
	_ = w.Close()
}
