package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
)

// Target describes where an index file is written and which part of the log the file will cover.
type Target struct {
	FS   vfs.FS
	Dir  string      // path of the store's folder
	Temp string      // path of a temporary file on the same file system that no other process uses
	Perm fs.FileMode // permissions of the new file; 0 means 0600

	Store string    // UUID of the store
	Chain uint64    // checksum of the log's last frame before LSN, which identifies the log up to there
	LSN   uint64    // position below which the set and the changes have all changes of the log
	Now   time.Time // the time to record as last_updated

	// Vectors is the LSN of the vector files (package vector) that are complete as of LSN, because no vector
	// has changed since. It is valid if VectorsKnown is set; otherwise a caller that needs the vectors compares
	// them with the index. Dimension is their current or last dimension; 0 if there was never a vector.
	Vectors      uint64
	Dimension    int
	VectorsKnown bool

	Offsets bool // also write the offsets of the new file (package table), if it is large enough

	Model Model // embedding model of the store, as of LSN

	// Ready is called before the new file is renamed into place: the files that the new one refers to must be
	// durable when Ready returns. It may be nil.
	Ready func() error

	// For WriteBase: with Backup, the old base is linked into backups/, and then all but the newest Backups
	// files there are removed. If Backups is 0 or less, no backup is made and none is removed.
	Backup  bool
	Backups int
}

// Written describes the index file that was written. If the old base could not be backed up, BackupErr is set, and the
// file is written nevertheless.
type Written struct {
	Result
	Backup    string // name of the backup of the old base in backups/, "" if none was made
	BackupErr error
}

// WriteDelta writes a new delta of the index, which has the changes of the present delta and the changes ch. s itself
// does not change; Load returns the new set.
func WriteDelta(s *Set, to Target, ch Changes) (Written, error) {
	p := newPairs(s, &ch)
	r, err := table.WriteDelta(s, to.table(nil), p.plan(&to))
	return Written{Result: r}, err
}

// WriteBase merges the index files and the changes into a new base file and removes the delta.
func WriteBase(s *Set, to Target, ch Changes) (Written, error) {
	var w Written
	p := newPairs(s, &ch)
	if !p.known {
		p.bytes, p.known = SumMemories(s) // a merge reads all of it anyway
	}
	keep := func() error {
		if to.Backup && to.Backups > 0 && s.Base() != nil {
			w.Backup, w.BackupErr = backUp(to, s.Base())
		}
		return nil
	}
	var err error
	if w.Result, err = table.WriteBase(s, to.table(keep), p.plan(&to)); err != nil {
		return w, err
	}
	if to.Backup && to.Backups > 0 && w.BackupErr == nil {
		w.BackupErr = prune(to.FS, to.Dir, to.Backups)
	}
	return w, nil
}

// WriteOffsets writes the missing or damaged offsets files of the index files of a set, and opens these files for s.
// It returns the names of the files that it wrote. damaged is called as Want.Damaged is.
func WriteOffsets(s *Set, to Target, damaged func(path string, err error)) (names []string, err error) {
	return table.WriteOffsets(s, to.table(nil), damaged)
}

func (to *Target) table(keep func() error) table.Target {
	return table.Target{
		FS: to.FS, Dir: to.Dir, Temp: to.Temp, Perm: to.Perm, Keep: keep, Ready: to.Ready, Offsets: to.Offsets,
		Meta: table.Meta{Store: to.Store, LSN: to.LSN, Updated: to.Now},
	}
}

func (to *Target) extra(p *pairs) []byte {
	x := fmt.Appendf(nil, `{"chain":"%016x"`, to.Chain)
	if to.VectorsKnown {
		x = fmt.Appendf(x, `,"vectors":%d,"dimension":%d`, to.Vectors, to.Dimension)
	}
	if to.Model.LSN != 0 {
		if b, err := json.Marshal(to.Model); err == nil {
			x = append(append(x, `,"model":`...), b...)
		}
	}
	if p.known {
		x = fmt.Appendf(x, `,"memory_bytes":%d`, p.bytes)
	}
	return append(x, '}')
}

// extra is the JSON object that the index stores in the metadata of its files.
type extra struct {
	Chain     string  `json:"chain"`
	Vectors   *uint64 `json:"vectors"`
	Dimension int     `json:"dimension"`
	Bytes     *int64  `json:"memory_bytes"`
	Model     *Model  `json:"model"`
}

// extraOf returns the extra object in the metadata of the newest file of a set. ok is false if the set has no file, or
// if the object cannot be decoded.
func extraOf(s *Set) (x extra, ok bool) {
	t := s.Delta()
	if t == nil {
		t = s.Base()
	}
	return x, t != nil && json.Unmarshal(t.Meta().Extra, &x) == nil
}

// Chain returns the chain hash of the log at the set's LSN, which was recorded when the set was written, and
// false if no file records it.
func Chain(s *Set) (uint64, bool) {
	x, ok := extraOf(s)
	if !ok {
		return 0, false
	}
	sum, err := strconv.ParseUint(x.Chain, 16, 64)
	return sum, err == nil
}

// Vectors returns the LSN up to which the vector files are complete, and the dimension of the vectors, both as the
// index records them. The dimension is 0 if the store has no vectors. known is false if the index does not record
// the LSN.
func Vectors(s *Set) (lsn uint64, dimension int, known bool) {
	x, ok := extraOf(s)
	if !ok || x.Vectors == nil {
		return 0, 0, false
	}
	return *x.Vectors, x.Dimension, true
}

// MemoryBytes returns the sum of the sizes of all memories in the index, in bytes, as the metadata of the index
// record it. known is false if the metadata do not have the sum; the caller must then read all lines to compute
// the sum.
func MemoryBytes(s *Set) (sum int64, known bool) {
	if s.Base() == nil {
		return 0, s.Count(Memories) == 0
	}
	x, ok := extraOf(s)
	if !ok || x.Bytes == nil {
		return 0, false
	}
	return *x.Bytes, true
}

// SumMemories returns the sum of the sizes of all memories in the index, read from all lines; ok is false if a
// line cannot be read.
func SumMemories(s *Set) (sum int64, ok bool) {
	for it, err := range s.Range(Memories, Span{}) {
		if err != nil {
			return 0, false
		}
		n, ok := sizeOf(it.Value)
		if !ok {
			return 0, false
		}
		sum += n
	}
	return sum, true
}

const (
	smallBase  = 256 << 10 // size in bytes below which a base is merged in every round
	deltaShare = 8         // a delta larger than 1/deltaShare of the base is merged into the base
)

// MergeDue reports whether the next flush should write a new base of the index. That is the case if there is no base,
// the base is small, or the delta has grown to an eighth of the base.
func MergeDue(s *Set) bool {
	if s.Base() == nil || s.Base().Size() < smallBase {
		return true
	}
	return s.Delta() != nil && s.Delta().Size() > s.Base().Size()/deltaShare
}

// pairs derives the edits of the sections that contain pairs. The edits of by_session and by_expiry come from the old
// and new index lines of memories. The edits of members and by_member come from the set and the changes.
type pairs struct {
	set      *Set
	ch       *Changes
	sessions []pairEdit
	expiries []pairEdit
	members  []pairEdit
	byMember []pairEdit

	assemblies *lineEdits

	bytes int64 // sum of the sizes of all memories in bytes
	known bool
}

func newPairs(s *Set, ch *Changes) *pairs {
	p := &pairs{set: s, ch: ch}
	p.bytes, p.known = MemoryBytes(s)
	return p
}

func (p *pairs) plan(to *Target) table.Plan {
	return table.Plan{Edits: p.edits, Changed: p.changed, Extra: func() []byte { return to.extra(p) }}
}

func (p *pairs) edits(sec int) (table.Edits, error) {
	switch sec {
	case BySession:
		return newPairEdits(p.sessions), nil
	case ByExpiry:
		return newPairEdits(p.expiries), nil
	case Members:
		return newPairEdits(p.members), nil
	case ByMember:
		return newPairEdits(p.byMember), nil
	}
	e, err := newLineEdits(p.ch, sec)
	if err == nil && sec == Assemblies {
		p.assemblies = e
		err = p.membership(e)
	}
	return e, err
}

func (p *pairs) changed(sec int, key, before, after []byte) error {
	if sec == Assemblies && after != nil {
		return counted(after, p.assemblies.now)
	}
	if sec != Memories {
		return nil
	}
	was, okWas := sizeOf(before)
	is, okIs := sizeOf(after)
	p.bytes, p.known = p.bytes+is-was, p.known && okWas && okIs
	if samePairs(before, after) {
		return nil
	}
	old, err := pairsOf(before)
	if err != nil {
		return fmt.Errorf("old index line of %s: %w", key, err)
	}
	now, err := pairsOf(after)
	if err != nil {
		return fmt.Errorf("new index line of %s: %w", key, err)
	}
	p.sessions = swapPair(p.sessions, old.session, now.session, key)
	p.expiries = swapPair(p.expiries, old.expiry, now.expiry, key)
	return nil
}

// samePairs reports whether two index lines of memories have the same text after their stamps, and therefore the same
// session and expiry. If samePairs returns false, the session and expiry may still be the same. The lines must be as
// this package writes them.
func samePairs(a, b []byte) bool {
	endA, okA := behindStamp(a)
	endB, okB := behindStamp(b)
	return okA && okB && bytes.Equal(endA, endB)
}

var (
	mtimeMember, versionMember    = []byte(`,"mtime":`), []byte(`,"version":`)
	byMember                      = []byte(`,"by":`)
	dimensionMember, vectorMember = []byte(`,"dimension":`), []byte(`,"vector_id":`)
)

// behindStamp returns the part of an index line that follows size, mtime and version, and the optional by, dimension
// and vector_id, in the order in which Finish writes these JSON members. ok is false if size, mtime or version is
// missing there. None of the names can occur inside a string, because each quote in a string has a backslash before
// it.
func behindStamp(line []byte) (rest []byte, ok bool) {
	at := bytes.Index(line, sizeMember)
	if at < 0 {
		return nil, false
	}
	rest = line[at:]
	for i, member := range [][]byte{sizeMember, mtimeMember, versionMember, byMember, dimensionMember, vectorMember} {
		if !bytes.HasPrefix(rest, member) {
			if i > 2 {
				continue
			}
			return nil, false
		}
		n := len(member)
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		rest = rest[n:]
	}
	return rest, true
}

// sizeOf returns the value of the JSON member size of an index line; 0 for a nil line. ok is false if the line has no
// such member.
func sizeOf(line []byte) (n int64, ok bool) {
	if line == nil {
		return 0, true
	}
	at := bytes.Index(line, sizeMember)
	if at < 0 {
		return 0, false
	}
	for _, c := range line[at+len(sizeMember):] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// linePairs has the prefixes of the keys of a memory in the sections by_session and by_expiry, in encoded form: a key
// is the prefix followed by the id of the memory. A prefix is "" if the section has no key of the memory.
type linePairs struct{ session, expiry string }

func pairsOf(line []byte) (lp linePairs, err error) {
	if line == nil {
		return lp, nil
	}
	e, err := ParseLine(line)
	if err != nil {
		return lp, err
	}
	if e.SessionID != "" {
		lp.session = escape(SessionPrefix(e.SessionID))
	}
	if !e.ExpiresAt.IsZero() {
		lp.expiry = escape(ExpiryKey(e.ExpiresAt, ""))
	}
	return lp, nil
}

func escape(s string) string { return string(jsondoc.AppendEscaped(nil, s)) }

// swapPair appends to list the edits that replace a pair: the key that begins with the prefix old is removed, and one
// that begins with the prefix now is added. A prefix "" means that there is no such key. key is the id of the memory
// in encoded form. Encoded parts can be joined, because the encoding works character by character.
func swapPair(list []pairEdit, old, now string, key []byte) []pairEdit {
	if old == now {
		return list
	}
	if old != "" {
		list = append(list, pairEdit{enc: old + string(key)})
	}
	if now != "" {
		list = append(list, pairEdit{enc: now + string(key), live: true})
	}
	return list
}
