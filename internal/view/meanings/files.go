package meanings

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// The names and limits of the files; see the package comment.
const (
	manifestName = "manifest.json"
	manifestMost = 16 << 20
	// maximum size in bytes of the file that lists the sections of notes: room for 4 million notes of one section
	// each, with paths of 90 bytes, or for 16 million sections
	rowsMost      = 512 << 20
	dimensionMost = 1 << 20 // the largest value that max_embedding_dims can have
	formatVersion = 1
	loadTries     = 8 // maximum number of attempts while other processes replace the files
	segmentMagic  = "VARVEMEA"
	rowsMagic     = "VARVEMEB"
	headerBytes   = 16
	hashBytes     = len(Hash{})
)

type manifest struct {
	Format    int       `json:"format"`
	LSN       uint64    `json:"lsn"`
	Sum       uint64    `json:"sum"`
	Model     string    `json:"model"`
	Metric    string    `json:"metric"`
	Dimension int       `json:"dimension"`
	Cut       int       `json:"cut"`
	Next      uint64    `json:"next"`
	Rows      listing   `json:"rows"`
	Segments  []listing `json:"segments"`
	Check     string    `json:"check,omitempty"`

	by vector.Metric // Metric
}

// listing is the description of one file in the manifest.
type listing struct {
	Name    string `json:"name"`
	Vectors int    `json:"vectors,omitempty"`
	Seen    uint64 `json:"seen,omitempty"`
	Bytes   int    `json:"bytes"`
	Sum     string `json:"sum"`
}

func (m *manifest) encode() ([]byte, error) {
	m.Check = ""
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	m.Check = hex(xxhash.Sum64(b))
	return json.MarshalIndent(m, "", " ")
}

func hex(v uint64) string { return fmt.Sprintf("%016x", v) }

func parseManifest(b []byte) (*manifest, error) {
	m := &manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrCorrupt, err)
	}
	if m.Format > formatVersion {
		return nil, fmt.Errorf("%w: format %d, this program reads up to %d", errs.ErrNewerFormat, m.Format, formatVersion)
	}
	check := m.Check
	if _, err := m.encode(); err != nil || m.Check != check {
		return nil, fmt.Errorf("%w: checksum mismatch", errs.ErrCorrupt)
	}
	for _, l := range append([]listing{m.Rows}, m.Segments...) {
		if strings.ContainsAny(l.Name, `/\`) || l.Name == "" {
			return nil, fmt.Errorf("%w: %q in the list of files is not a file name", errs.ErrCorrupt, l.Name)
		}
	}
	if m.Dimension < 0 || m.Dimension > dimensionMost || m.Next > 1<<62 {
		return nil, fmt.Errorf("%w: impossible dimension %d or file number %d", errs.ErrCorrupt, m.Dimension, m.Next)
	}
	if m.Rows.Bytes < len(rowsMagic) || m.Rows.Bytes > rowsMost {
		return nil, fmt.Errorf("%w: the manifest lists rows of %d bytes, which is impossible", errs.ErrCorrupt,
			m.Rows.Bytes)
	}
	for _, l := range m.Segments {
		if !l.holds(m.Dimension) {
			return nil, fmt.Errorf("%w: lists a segment of %d vectors of %d dimensions and %d bytes", errs.ErrCorrupt,
				l.Vectors, m.Dimension, l.Bytes)
		}
	}
	var err error
	if m.by, err = vector.ParseMetric(m.Metric); err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrCorrupt, err)
	}
	return m, nil
}

// holds reports whether the listed size in bytes is right for a segment with the listed number of vectors of dimension
// dim. The calculation does not overflow, even if a damaged manifest has extreme numbers.
func (l *listing) holds(dim int) bool {
	if dim < 1 || l.Vectors < 1 || l.Bytes < headerBytes {
		return false
	}
	one, all := int64(hashBytes+4*dim), int64(l.Bytes-headerBytes)
	return all%one == 0 && all/one == int64(l.Vectors) && int64(l.Vectors) <= math.MaxUint32
}

// highest returns the highest number among file names. It returns 0 if no file name has a number.
func highest(names []string) (largest uint64) {
	for _, name := range names {
		head, _, _ := strings.Cut(name, ".")
		if n, err := strconv.ParseUint(head, 16, 64); err == nil && len(head) == 16 && n < 1<<62 {
			largest = max(largest, n)
		}
	}
	return largest
}

func (m *Meanings) names() ([]string, error) {
	names, err := m.eng.ViewFolder(Name).Names()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return names, err
}

// segment is a mapped file with vectors of texts. It is a file of this view, not a segment of the log.
type segment struct {
	listing
	m      vfs.Mapping
	hashes []byte
	rows   []byte
	dim    int
}

func openSegment(f *view.Folder, l listing, dim int) (*segment, error) {
	m, err := f.Map(l.Name)
	if err != nil {
		return nil, err
	}
	s := &segment{listing: l, m: m, dim: dim}
	b := m.Bytes()
	wrong := len(b) != l.Bytes || len(b) < headerBytes
	if !wrong {
		err = vfs.Guard(func() error {
			wrong = string(b[:8]) != segmentMagic || binary.LittleEndian.Uint32(b[8:]) != uint32(l.Vectors) ||
				binary.LittleEndian.Uint32(b[12:]) != uint32(dim) ||
				len(b) != headerBytes+l.Vectors*(hashBytes+4*dim)
			return nil
		})
	}
	if err == nil && wrong {
		err = fmt.Errorf("%s: %w: not the segment that the manifest lists", l.Name, errs.ErrCorrupt)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	s.hashes = b[headerBytes : headerBytes+l.Vectors*hashBytes]
	s.rows = b[headerBytes+l.Vectors*hashBytes:]
	return s, nil
}

func (s *segment) hash(i int) []byte { return s.hashes[i*hashBytes : (i+1)*hashBytes] }
func (s *segment) row(i int) []byte  { return s.rows[i*4*s.dim : (i+1)*4*s.dim] }

// find returns the index of the vector of the text with the hash h; ok is false if the segment has no such vector.
func (s *segment) find(h Hash) (i int, ok bool) {
	lo, hi := 0, s.Vectors
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch bytes.Compare(s.hash(mid), h[:]) {
		case 0:
			return mid, true
		case -1:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

func (s *segment) check() error {
	if hex(xxhash.Sum64(s.m.Bytes())) != s.Sum {
		return fmt.Errorf("%s: %w: checksum mismatch", s.Name, errs.ErrCorrupt)
	}
	return nil
}

// release releases the mapped files.
func (m *Meanings) release() (err error) {
	for _, s := range m.segs {
		err = errors.Join(err, s.m.Close())
	}
	m.segs = nil
	return err
}

// Load implements view.View.
func (m *Meanings) Load(f *view.Folder) (wal.Mark, error) {
	var err error
	for range loadTries {
		var b []byte
		if b, err = f.Read(manifestName, manifestMost); err != nil {
			break
		}
		if m.loaded != nil && bytes.Equal(b, m.loaded) && !m.change && len(m.added) == 0 {
			return m.at, nil
		}
		if err = vfs.Guard(func() error { return m.load(f, b) }); err == nil {
			return m.at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		err = fmt.Errorf("%w: %w", errs.ErrCorrupt, err) // the manifest lists a missing file
	}
	m.begin()
	err = errors.Join(err, m.release())
	if errors.Is(err, errs.ErrCorrupt) {
		err = &errs.CorruptionError{Path: f.Path, Offset: -1, Err: err}
	}
	return wal.Mark{}, err
}

func (m *Meanings) load(f *view.Folder, b []byte) error {
	has, err := parseManifest(b)
	if err == nil && has.Cut != note.CutVersion {
		err = fmt.Errorf("%w: the sections were made by version %d of the rules for dividing notes, but this "+
			"program uses version %d", errs.ErrCorrupt, has.Cut, note.CutVersion)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", manifestName, err)
	}
	rows, err := f.Read(has.Rows.Name, int64(has.Rows.Bytes))
	if errors.Is(err, errs.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", errs.ErrCorrupt, err)
	}
	if err != nil {
		return err
	}
	if len(rows) != has.Rows.Bytes || hex(xxhash.Sum64(rows)) != has.Rows.Sum {
		return fmt.Errorf("%s: %w: checksum mismatch", has.Rows.Name, errs.ErrCorrupt)
	}
	m.begin()
	if err := m.release(); err != nil {
		return err
	}
	for _, l := range has.Segments {
		s, err := openSegment(f, l, has.Dimension)
		if err != nil {
			return err
		}
		m.segs = append(m.segs, s)
	}
	m.model, m.by, m.dim, m.next = has.Model, has.by, has.Dimension, has.Next
	if err := m.parseRows(rows); err != nil {
		return fmt.Errorf("%s: %w", has.Rows.Name, err)
	}
	m.rows, m.change = has.Rows, false
	m.loaded, m.at = bytes.Clone(b), wal.Mark{LSN: has.LSN, Sum: has.Sum}
	return nil
}

func (m *Meanings) parseRows(b []byte) error {
	bad := fmt.Errorf("%w: cut off", errs.ErrCorrupt)
	if len(b) < len(rowsMagic) || string(b[:len(rowsMagic)]) != rowsMagic {
		return bad
	}
	b = b[len(rowsMagic):]
	number := func() (uint64, bool) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
	for len(b) > 0 {
		size, ok := number()
		if !ok || size > uint64(len(b)) {
			return bad
		}
		path := string(b[:size])
		b = b[size:]
		lsn, ok := number()
		if !ok {
			return bad
		}
		n, ok := number()
		if !ok || n > uint64(len(b)/hashBytes) {
			return bad
		}
		s := sections{lsn: lsn, hashes: make([]Hash, n)}
		for i := range s.hashes {
			copy(s.hashes[i][:], b)
			b = b[hashBytes:]
		}
		m.set(path, s)
	}
	return nil
}

func (m *Meanings) encodeRows() []byte {
	b := []byte(rowsMagic)
	for _, path := range slices.Sorted(maps.Keys(m.notes)) {
		s := m.notes[path]
		b = append(binary.AppendUvarint(b, uint64(len(path))), path...)
		b = binary.AppendUvarint(binary.AppendUvarint(b, s.lsn), uint64(len(s.hashes)))
		for i := range s.hashes {
			b = append(b, s.hashes[i][:]...)
		}
	}
	return b
}

// Save implements view.View.
func (m *Meanings) Save(ctx context.Context, f *view.Folder, mark wal.Mark) error {
	err := vfs.Guard(func() error { return m.save(ctx, f, mark) })
	if err != nil {
		m.begin() // the next Load begins with what the manifest lists
		err = errors.Join(err, m.release())
		for _, name := range m.written {
			_ = f.FS.Remove(filepath.Join(f.Path, name)) // if the file stays, the next Save removes it
		}
	}
	m.purges, m.written = false, nil
	return err
}

func (m *Meanings) save(ctx context.Context, f *view.Folder, mark wal.Mark) error {
	names, err := m.names()
	if err != nil {
		return err
	}
	has := &manifest{Format: formatVersion, LSN: mark.LSN, Sum: mark.Sum, Model: m.model,
		Metric: m.by.String(), Cut: note.CutVersion, Rows: m.rows, Segments: []listing{}}
	m.next = max(m.next, 1+highest(names))
	if has.Segments, err = m.saveVectors(ctx, f, mark.LSN); err != nil {
		return err
	}
	if m.change || m.rows.Name == "" {
		b := m.encodeRows()
		if len(b) > rowsMost {
			return fmt.Errorf("%w: the rows of the sections of all notes have %d bytes, the limit is %d: divide or delete notes",
				errs.ErrTooLarge, len(b), rowsMost)
		}
		has.Rows = listing{Name: hex(m.next) + "." + hex(mark.LSN) + ".st", Bytes: len(b), Sum: hex(xxhash.Sum64(b))}
		m.next++
		m.written = append(m.written, has.Rows.Name)
		if err := f.Write(has.Rows.Name, b); err != nil {
			return err
		}
	}
	if has.Next = m.next; len(has.Segments) > 0 {
		has.Dimension = m.dim
	}
	b, err := has.encode()
	if err != nil {
		return err
	}
	m.written = nil // even if Write fails, the manifest that lists these files may be in place
	if err := f.Write(manifestName, b); err != nil {
		return err
	}
	keep := map[string]bool{manifestName: true, has.Rows.Name: true}
	for _, l := range has.Segments {
		keep[l.Name] = true
	}
	for _, name := range names {
		if ext := filepath.Ext(name); !keep[name] && (ext == ".seg" || ext == ".st" || m.purges) {
			err := f.FS.Remove(filepath.Join(f.Path, name)) // if the file is in use, a later round removes it
			if err != nil && m.purges && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if m.purges {
		if err := f.FS.SyncDir(f.Path); err != nil {
			return err
		}
	}
	return m.load(f, b) // what was written is read from the files from now on
}

// group describes a segment to be written: it is made of existing segments and of added vectors.
type group struct {
	segs  []*segment
	added []Vector
	n     int // number of vectors
}

// saveVectors writes the new and the merged segments, and returns the list of all segments for the manifest. pos is
// the log position of the view's content. When ctx ends, saveVectors returns the error of ctx.
func (m *Meanings) saveVectors(ctx context.Context, f *view.Folder, pos uint64) (list []listing, err error) {
	var groups []group
	dead, all := 0, 0
	for _, s := range m.segs {
		groups = append(groups, group{segs: []*segment{s}, n: s.Vectors})
		all += s.Vectors
		dead += m.dead(s, pos)
	}
	if len(m.added) > 0 {
		groups = append(groups, group{added: m.added, n: len(m.added)})
	}
	for n := len(groups); n > 1 && (2*dead > all || groups[n-2].n < 2*groups[n-1].n); n = len(groups) {
		a, b := groups[n-2], groups[n-1]
		groups = append(groups[:n-2], group{segs: append(slices.Clone(a.segs), b.segs...), added: append(a.added, b.added...),
			n: a.n + b.n})
	}
	for _, g := range groups {
		if s := g.segs; len(s) == 1 && len(g.added) == 0 {
			n := m.dead(s[0], pos)
			if n == 0 || !m.purges && 2*n <= s[0].Vectors {
				list = append(list, s[0].listing)
				continue
			}
		}
		l, err := m.write(ctx, f, g, pos)
		if err != nil {
			return nil, err
		}
		if l.Vectors > 0 {
			list = append(list, l)
		}
	}
	return list, nil
}

// keeps reports whether the vector of the text with hash h is kept: a section has that text, or seen is after pos and
// no purge is in progress. pos is the log position of the view's content. seen is the log position up to which the
// process that added the vector had read; if it is after pos, a newer version of a note may have the text.
func (m *Meanings) keeps(h Hash, seen, pos uint64) bool {
	return m.used[h] > 0 || seen > pos && !m.purges
}

// dead returns the number of vectors in a segment that a merge would not keep. pos is the log position of the view's
// content.
func (m *Meanings) dead(s *segment, pos uint64) (n int) {
	if s.Seen > pos && !m.purges {
		return 0
	}
	for i := range s.Vectors {
		if m.used[Hash(s.hash(i))] == 0 {
			n++
		}
	}
	return n
}

// write writes a segment file with those vectors of the group g that are kept (see keeps). If none is kept, write
// writes no file and l.Vectors is 0. pos is the log position of the view's content.
func (m *Meanings) write(ctx context.Context, f *view.Folder, g group, pos uint64) (l listing, err error) {
	type vec struct {
		hash Hash
		row  []byte
	}
	var vecs []vec
	for _, s := range g.segs {
		for i := range s.Vectors {
			if h := Hash(s.hash(i)); m.keeps(h, s.Seen, pos) {
				vecs = append(vecs, vec{h, s.row(i)})
				if m.used[h] == 0 {
					l.Seen = max(l.Seen, s.Seen)
				}
			}
		}
	}
	for _, v := range g.added {
		if m.keeps(v.Hash, m.seen, pos) {
			vecs = append(vecs, vec{v.Hash, m.by.Row(nil, v.Vector)})
			if m.used[v.Hash] == 0 {
				l.Seen = max(l.Seen, m.seen)
			}
		}
	}
	slices.SortFunc(vecs, func(a, b vec) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	vecs = slices.CompactFunc(vecs, func(a, b vec) bool { return a.hash == b.hash })
	if l.Vectors = len(vecs); l.Vectors == 0 {
		return l, nil
	}
	sum := xxhash.New()
	l.Name = hex(m.next) + ".seg"
	m.next++
	m.written = append(m.written, l.Name)
	err = f.WriteBy(l.Name, func(give func(b []byte) error) error {
		out := func(b []byte) error {
			_, _ = sum.Write(b)
			l.Bytes += len(b)
			return give(b)
		}
		head := binary.LittleEndian.AppendUint32([]byte(segmentMagic), uint32(len(vecs)))
		if err := out(binary.LittleEndian.AppendUint32(head, uint32(m.dim))); err != nil {
			return err
		}
		for _, v := range vecs {
			if err := out(v.hash[:]); err != nil {
				return err
			}
		}
		for _, v := range vecs {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := out(v.row); err != nil {
				return err
			}
		}
		return nil
	})
	l.Sum = hex(sum.Sum64())
	return l, err
}

// metric returns the metric of the store's vectors.
func (m *Meanings) metric() vector.Metric {
	metric, err := vector.ParseMetric(m.eng.Settings().Now().VectorSettings().Metric)
	if err != nil {
		return vector.IP
	}
	return metric
}
