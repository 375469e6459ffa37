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
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/refcount"
	"github.com/varve-db/varve/internal/vfs"
)

// Table is one open file. All its methods may be called from several goroutines.
type Table struct {
	name     string
	sch      *Schema
	mapping  vfs.Mapping
	file     vfs.Info // of the file that is mapped
	data     []byte
	body     int // where the metadata begin
	meta     Meta
	sections []span          // of the schema; empty those that the file does not have
	present  int             // how many it has
	blocks   []byte          // hex, in the mapping
	seen     []atomic.Uint64 // one bit for each block that matched its hash
	edges    []atomic.Pointer[edge]
	newlines atomic.Pointer[[]uint32] // before each block; see ordinal.go
	end      [endWidth]byte
	refs     refcount.Count
}

// edge holds the first and last key of a section, behind their opening quotes.
type edge struct{ first, last []byte }

// Open maps a table. It reads the last line and the metadata, nothing else.
// The caller owns one reference. name is relative to dir.
func Open(fsys vfs.FS, dir, name string, sch *Schema) (*Table, error) {
	f, err := fsys.OpenFile(filepath.Join(dir, name), os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("look at %s: %w", name, err)
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

// readEnd reads the last line and the metadata.
func (t *Table) readEnd() error {
	size := len(t.data)
	if size < endWidth {
		return t.damaged(-1, fmt.Errorf("%d bytes are too few for a table", size))
	}
	last := t.data[size-endWidth:]
	off, hash, ok := parseEnd(last)
	if !ok {
		return t.damaged(int64(size-endWidth),
			errors.New("the last line is not that of a table: cut short, or of another program"))
	}
	if off >= uint64(size-endWidth) {
		return t.damaged(int64(size-endWidth), errors.New("the last line points outside the file"))
	}
	t.body = int(off)
	line := t.data[t.body : size-endWidth]
	if xxhash.Sum64(line) != hash {
		return t.damaged(int64(t.body), errors.New("the metadata do not match their checksum"))
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
		return t.damaged(int64(t.body), fmt.Errorf("the metadata cover the log from %d to %d, which no log can reach",
			t.meta.From, t.meta.LSN))
	}
	t.present = len(t.sections)
	n := (t.body + blockSize - 1) / blockSize
	if len(t.blocks) != n*hashWidth {
		return t.damaged(int64(t.body), fmt.Errorf("%d bytes of hashes for %d blocks", len(t.blocks), n))
	}
	if err := t.checkSpans(); err != nil {
		return t.damaged(int64(t.body), err)
	}
	copy(t.end[:], last)
	t.seen = make([]atomic.Uint64, (n+63)/64)
	t.edges = make([]atomic.Pointer[edge], len(t.sections))
	return nil
}

// mostLSN is behind every position of a log (segment.MaxNumber).
const mostLSN = 1 << 62

// checkSpans checks that the sections fill the file before the metadata, except for their heads,
// and adds those that it may lack.
func (t *Table) checkSpans() error {
	at := int64(0)
	for i, s := range t.sections {
		at += int64(len(t.sch.head(i)))
		if s.start != at || s.end < s.start || s.end > int64(t.body) || (s.lines == 0) != (s.start == s.end) ||
			s.lines > (s.end-s.start)/minLine {
			return fmt.Errorf("section %q is not where the metadata say", t.sch.Sections[i].Name)
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

// minLine is the length of the shortest line, `"":0` and its newline.
const minLine = 5

// parseEnd takes the last line apart.
func parseEnd(b []byte) (off, hash uint64, ok bool) {
	if len(b) != endWidth || !bytes.HasPrefix(b, []byte(endHead)) || !bytes.HasSuffix(b, []byte(endTail)) ||
		b[len(endHead)+16] != ' ' {
		return 0, 0, false
	}
	off, ok1 := parseHash(b[len(endHead):])
	hash, ok2 := parseHash(b[len(endHead)+17:])
	return off, hash, ok1 && ok2
}

// parseHash reads 16 lower-case hex digits.
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

// Retain takes another reference. It fails when the last one is gone.
func (t *Table) Retain() bool { return t.refs.Retain() }

// Release gives a reference back; the last one unmaps the file.
func (t *Table) Release() error {
	if t.refs.Release() {
		return t.mapping.Close()
	}
	return nil
}

// Name is the file's name, relative to its store.
func (t *Table) Name() string { return t.name }

// Meta returns the store of the table and the range that it covers.
func (t *Table) Meta() Meta { return t.meta }

// Size is the length of the file.
func (t *Table) Size() int64 { return int64(len(t.data)) }

// Lines is the number of lines in a section of this file, Live the number of
// entries that live when this file lies over its base.
func (t *Table) Lines(sec int) int64 { return t.sections[sec].lines }

// Has reports whether the file has a section; optional sections may be missing.
func (t *Table) Has(sec int) bool { return sec < t.present }

// Live: see Lines.
func (t *Table) Live(sec int) int64 { return t.sections[sec].live }

// damaged says where the file is wrong.
func (t *Table) damaged(off int64, err error) error {
	return &errs.CorruptionError{Path: t.name, Offset: off, Err: err}
}

// guard runs f, which reads the mapping, and turns a fault into an error.
func (t *Table) guard(f func() error) error { return vfs.GuardFile(t.name, f) }

// missing reports whether err says that there is no such file.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
