package table

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/refcount"
	"github.com/varve-db/varve/internal/vfs"
)

// Table is an open table file. Its methods may be called concurrently.
type Table struct {
	name     string
	sch      *Schema
	mapping  vfs.Mapping
	file     vfs.Info // file information of the mapped file
	data     []byte
	body     int // offset of the metadata
	meta     Meta
	sections []span          // position of each section of the schema; empty if the file does not have the section
	present  int             // number of sections that the file has
	blocks   []byte          // hex hashes of the blocks; a slice of the mapping
	seen     []atomic.Uint64 // bit set of the blocks that were verified
	edges    []atomic.Pointer[edge]
	newlines atomic.Pointer[[]uint32] // number of newlines before each block; see ordinal.go
	offsets  atomic.Pointer[offsets]  // nil: the table has none, so look-ups search

	replacing sync.Mutex
	replaced  []*offsets // damaged offsets that look-ups may still read
	end       [endWidth]byte
	refs      refcount.Count
}

// edge has the first and the last key of a section, each without its opening quote.
type edge struct{ first, last []byte }

// Open opens a table file and maps it into memory. It reads only the last line and the metadata. name is relative to
// dir. The caller receives one reference, which it must release.
func Open(fsys vfs.FS, dir, name string, sch *Schema) (*Table, error) {
	f, err := fsys.OpenFile(filepath.Join(dir, name), os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("stat %s: %w", name, err)
	}
	m, err := f.Map()
	if cerr := f.Close(); err == nil && cerr != nil {
		_ = m.Close()
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	t := &Table{name: name, sch: sch, mapping: m, file: info, data: m.Bytes()}
	t.refs.Start()
	if err := t.guard(t.readEnd); err != nil {
		_ = m.Close()
		return nil, err
	}
	return t, nil
}

// readEnd reads the last line of the file, and the metadata whose position the last line has.
func (t *Table) readEnd() error {
	size := len(t.data)
	if size < endWidth {
		return t.damaged(-1, fmt.Errorf("the file has only %d bytes, which are too few for a table", size))
	}
	last := t.data[size-endWidth:]
	off, hash, ok := parseEnd(last)
	if !ok {
		return t.damaged(int64(size-endWidth),
			errors.New("the file does not end like a table: cut short, or written by another program"))
	}
	if off >= uint64(size-endWidth) {
		return t.damaged(int64(size-endWidth), errors.New("the position in the last line is outside of the file"))
	}
	t.body = int(off)
	line := t.data[t.body : size-endWidth]
	if xxhash.Sum64(line) != hash {
		return t.damaged(int64(t.body), errors.New("checksum mismatch in the metadata"))
	}
	var err error
	if t.meta, t.sections, t.blocks, err = parseMeta(line, t.sch); err != nil {
		var newer *errs.NewerError
		if errors.As(err, &newer) {
			newer.Path = t.name
			return newer
		}
		return t.damaged(int64(t.body), err)
	}
	if t.meta.LSN >= mostLSN || t.meta.From >= mostLSN {
		return t.damaged(int64(t.body), fmt.Errorf("the metadata have log positions %d to %d, which exceed the maximum",
			t.meta.From, t.meta.LSN))
	}
	t.present = len(t.sections)
	n := (t.body + blockSize - 1) / blockSize
	if len(t.blocks) != n*hashWidth {
		return t.damaged(int64(t.body), fmt.Errorf("the hashes of %d blocks must have %d bytes, but have %d", n, n*hashWidth,
			len(t.blocks)))
	}
	if err := t.checkSpans(); err != nil {
		return t.damaged(int64(t.body), err)
	}
	copy(t.end[:], last)
	t.seen = make([]atomic.Uint64, (n+63)/64)
	t.edges = make([]atomic.Pointer[edge], len(t.sections))
	return nil
}

// mostLSN is above every position that a log can have (segment.MaxNumber).
const mostLSN = 1 << 62

// checkSpans returns an error unless the sections fill the file before the metadata without gaps. It adds
// empty spans for optional sections that the file does not have.
func (t *Table) checkSpans() error {
	at := int64(0)
	for i, s := range t.sections {
		at += int64(len(t.sch.head(i)))
		if s.start != at || s.end < s.start || s.end > int64(t.body) || (s.lines == 0) != (s.start == s.end) ||
			s.lines > (s.end-s.start)/minLine {
			return fmt.Errorf("section %q is not at the position in the metadata", t.sch.Sections[i].Name)
		}
		at = s.end
	}
	for len(t.sections) < len(t.sch.Sections) {
		t.sections = append(t.sections, span{start: at, end: at})
	}
	if at+int64(len(foot)) != int64(t.body) {
		return errors.New("the sections do not end where the metadata begin")
	}
	return nil
}

// minLine is the length in bytes of the shortest possible line: `"":0` and a newline.
const minLine = 5

// parseEnd parses the last line of a table. It returns the offset of the metadata and their hash. ok is false if b
// does not have the form of a last line.
func parseEnd(b []byte) (off, hash uint64, ok bool) {
	if len(b) != endWidth || !bytes.HasPrefix(b, []byte(endHead)) || !bytes.HasSuffix(b, []byte(endTail)) ||
		b[len(endHead)+16] != ' ' {
		return 0, 0, false
	}
	off, ok1 := parseHash(b[len(endHead):])
	hash, ok2 := parseHash(b[len(endHead)+17:])
	return off, hash, ok1 && ok2
}

// parseHash parses 16 lower-case hex digits at the start of b. ok is false if b does not begin with them.
func parseHash(b []byte) (v uint64, ok bool) {
	for _, c := range b[:hashWidth] {
		d := hexValue(c)
		if d > 15 {
			return 0, false
		}
		v = v<<4 | uint64(d)
	}
	return v, true
}

func appendHash(dst []byte, v uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return hex.AppendEncode(dst, b[:])
}

// Retain takes another reference. It returns false if the last reference was released.
func (t *Table) Retain() bool { return t.refs.Retain() }

// Release releases a reference; the last one unmaps the file.
func (t *Table) Release() error {
	if !t.refs.Release() {
		return nil
	}
	err := t.mapping.Close()
	for _, o := range append(t.replaced, t.offsets.Load()) {
		if o != nil {
			err = errors.Join(err, o.mapping.Close())
		}
	}
	return err
}

// Name returns the file's name relative to its store.
func (t *Table) Name() string { return t.name }

// Meta returns the store of the table and the log range that it covers.
func (t *Table) Meta() Meta { return t.meta }

// Size returns the length of the file in bytes.
func (t *Table) Size() int64 { return int64(len(t.data)) }

// Lines returns the number of lines in a section of this file. In a delta, this number differs from Live.
func (t *Table) Lines(sec int) int64 { return t.sections[sec].lines }

// Has reports whether the file has a section; optional sections may be missing.
func (t *Table) Has(sec int) bool { return sec < t.present }

// Live returns the number of existing keys in a section; for a delta, in base and delta together.
func (t *Table) Live(sec int) int64 { return t.sections[sec].live }

// damaged returns a *errs.CorruptionError that names this file and the offset, with err as the cause.
func (t *Table) damaged(off int64, err error) error {
	return &errs.CorruptionError{Path: t.name, Offset: off, Err: err}
}

// guard calls f, which reads the mapped file, and returns a memory fault (as when the file was truncated) as
// an error.
func (t *Table) guard(f func() error) error { return vfs.GuardFile(t.name, f) }

// missing reports whether err means that the file does not exist.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
