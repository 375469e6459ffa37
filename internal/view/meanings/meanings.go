package meanings

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// Name is the name of the view.
const Name = "meanings"

// Hash is the SHA-256 of the text of a section.
type Hash [sha256.Size]byte

// sections has the version of a note, and the hash of the text of each of its sections, in the order of the sections.
type sections struct {
	lsn    uint64
	hashes []Hash
}

// section tells where a section is: the path of the note, and the index of the section in the note.
type section struct {
	path string
	i    int // index of the section in the result of note.Sections
}

// Meanings is the view of the vectors of note sections.
type Meanings struct {
	eng *engine.Engine

	notes map[string]sections // sections of each note, by path
	used  map[Hash]int        // number of sections that have a text, by the hash of the text
	lacks map[Hash]section    // texts without a vector, each with a section that has it; zero: see drop
	// keys of lacks in the order in which they were added; it may contain texts that lacks no longer has
	queue []Hash

	model string // name of the model of the vectors
	by    vector.Metric
	dim   int // 0: there are no vectors
	segs  []*segment
	added []Vector // vectors that are not in a segment yet
	seen  uint64   // highest log position up to which a process had read that added vectors
	next  uint64   // number of the next file

	rows   listing // the file of notes; up to date unless change is set
	change bool    // notes differ from the content of that file
	purges bool    // the next Save removes all other files
	// names of the files that the Save in progress has written, until it writes the manifest that lists them
	written []string
	loaded  []byte // manifest as it was loaded
	at      wal.Mark
}

// Vector is the vector of a text.
type Vector struct {
	Hash   Hash
	Vector []float32
}

// New implements views.Maker.
func New(eng *engine.Engine) view.View { return newMeanings(eng) }

func newMeanings(eng *engine.Engine) *Meanings {
	m := &Meanings{eng: eng}
	m.begin()
	return m
}

// begin empties the view. Segments stay mapped until Close or the next Load.
func (m *Meanings) begin() {
	m.notes, m.used, m.lacks = map[string]sections{}, map[Hash]int{}, map[Hash]section{}
	m.queue = nil
	m.model, m.by, m.dim, m.added, m.seen, m.next = m.storeModel(), m.metric(), 0, nil, 0, 1
	m.rows, m.change, m.loaded, m.at = listing{}, true, nil, wal.Mark{}
}

// storeModel returns the name of the model of the store's vectors; "" if none is named.
func (m *Meanings) storeModel() string { return m.eng.State().Model().Name }

// Name implements view.View.
func (m *Meanings) Name() string { return Name }

// Absent reports whether the store has never had a note, or has no name for the model of its vectors. In both cases no
// process adds vectors of sections, and the view has no files.
func (m *Meanings) Absent() bool {
	return !m.eng.HasHad(m.eng.Kinds().Notes) || m.storeModel() == ""
}

// Outdated reports whether the vectors are by another model than those of the store, or for another metric.
func (m *Meanings) Outdated() bool { return m.model != m.storeModel() || m.by != m.metric() }

// OutdatedIn reports whether the view's files in a folder are by another model or metric than those of the store, or
// were made by other rules for dividing notes into sections. It reads only the manifest, and returns false if the
// manifest cannot be read.
func (m *Meanings) OutdatedIn(f *view.Folder) bool {
	b, err := f.Read(manifestName, manifestMost)
	if err != nil {
		return false
	}
	has, err := parseManifest(b)
	return err == nil && (has.Model != m.storeModel() || has.Metric != m.metric().String() ||
		has.Cut != note.CutVersion)
}

// Covered implements view.Fold.
func (m *Meanings) Covered(*index.Set) bool { return !m.Outdated() }

// textMost is the maximum number of bytes of a text: a section can be a single line of any length.
const textMost = 8 << 10

// TextOf returns the text that is embedded for the section s of the note doc: the headings above the section and its
// content, at most textMost bytes.
func TextOf(doc []byte, s *note.Section) string {
	text := strings.ToValidUTF8(string(doc[s.Start:min(s.End, s.Start+textMost)]), "")
	if len(s.Headings) > 0 {
		text = strings.Join(s.Headings, "\n") + "\n\n" + text
	}
	return first(text, textMost)
}

func hashOf(text string) Hash { return sha256.Sum256([]byte(text)) }

func first(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	for maxBytes > 0 && !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes]
}

// Reset implements view.Fold.
func (m *Meanings) Reset(ctx context.Context, set *index.Set) error {
	names, err := m.names()
	if err != nil {
		return err
	}
	m.begin()
	m.release()
	m.next = 1 + highest(names) // the previous files stay until the manifest lists others
	k := m.eng.Kinds().Notes
	for it, err := range set.Range(k.Section, index.Span{}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		path := string(it.Key)
		if note.IsSidecar(path) {
			continue
		}
		line, err := index.ParseLine(it.Value)
		if err != nil {
			return fmt.Errorf("%w: the index line of %s is invalid: %w", errs.ErrCorrupt, human.Quote(path), err)
		}
		v, err := m.eng.Read(ctx, k, path, state.Place{Version: line.Version, Entry: line}, true)
		if err != nil {
			if vfs.IsStarved(err) || vfs.IsUnopened(err) || ctx.Err() != nil {
				return err
			}
			v, _ = m.eng.FromLog(ctx, k, path, line.Version) // else it has no sections
		}
		if err := m.put(path, line.Version, v.Doc); err != nil {
			return err
		}
	}
	return nil
}

// Apply implements view.Fold.
func (m *Meanings) Apply(ctx context.Context, _ *index.Set, e *wal.Entry) error {
	if m.eng.Kinds().Of(e.Key) != m.eng.Kinds().Notes || note.IsSidecar(e.Key[1:]) {
		return nil
	}
	path := strings.Clone(e.Key[1:])
	if e.Delete {
		m.drop(path)
		return nil
	}
	_, rec, err := state.LineIn(e)
	if err != nil {
		return err
	}
	if m.notes[path].lsn >= e.LSN {
		return nil // applied already
	}
	give, err := m.eng.Codec().Take(ctx, int64(rec.Size()))
	if err != nil {
		return err
	}
	defer give()
	doc, err := m.eng.Codec().Doc(&rec, places.StoredMost)
	if err != nil {
		doc = nil // it has no sections
	}
	return m.put(path, e.LSN, doc)
}

// put replaces the sections of a note by those of another version of the note. The vectors of texts that both versions
// have are kept.
func (m *Meanings) put(path string, lsn uint64, doc []byte) error {
	list := note.Sections(doc)
	now := sections{lsn: lsn, hashes: make([]Hash, len(list))}
	for i := range list {
		now.hashes[i] = hashOf(TextOf(doc, &list[i]))
	}
	return vfs.Guard(func() error { // it looks into mapped files
		m.drop(path)
		m.set(path, now)
		return nil
	})
}

func (m *Meanings) set(path string, now sections) {
	m.notes[path], m.change = now, true
	for i, h := range now.hashes {
		if m.used[h]++; m.used[h] == 1 && !m.hasVector(h) {
			m.lacks[h] = section{path, i}
			m.queue = append(m.queue, h)
		}
	}
	if len(m.queue) > 2*len(m.lacks)+queueSpare { // where no embedder runs, nothing else makes it shorter
		m.compact()
	}
}

// queueSpare is a limit on the length of the queue, above which compact is called: the queue may have two entries for
// each text without a vector, and queueSpare more.
const queueSpare = 1024

// compact removes duplicates from m.queue, and texts that are no longer in m.lacks.
func (m *Meanings) compact() {
	queue, has := make([]Hash, 0, len(m.lacks)), make(map[Hash]bool, len(m.lacks))
	for _, h := range m.queue {
		if _, ok := m.lacks[h]; ok && !has[h] {
			queue, has[h] = append(queue, h), true
		}
	}
	m.queue = queue
}

func (m *Meanings) drop(path string) {
	was, ok := m.notes[path]
	if !ok {
		return
	}
	delete(m.notes, path)
	m.change = true
	for _, h := range was.hashes {
		if m.used[h]--; m.used[h] == 0 {
			delete(m.used, h)
			delete(m.lacks, h)
		} else if at, ok := m.lacks[h]; ok && at.path == path {
			m.lacks[h] = section{} // of another note: see Query.Lacking
		}
	}
}

// hasVector reports whether there is a vector of the text with the hash h.
func (m *Meanings) hasVector(h Hash) bool {
	for _, s := range m.segs {
		if _, ok := s.find(h); ok {
			return true
		}
	}
	for i := range m.added {
		if m.added[i].Hash == h {
			return true
		}
	}
	return false
}

// Add adds vectors that were computed with a model. The next Save writes them to files. seen is the log position up to
// which the caller has read. Add ignores vectors of a model other than the view's, and vectors of texts that already
// have one; n is the number of the vectors that it added. Vectors of different dimensions cannot be compared. If the
// new vectors have another dimension than those in the view, Add drops the old ones, and their texts have no vector
// again.
func (m *Meanings) Add(model string, seen uint64, list []Vector) (n int, err error) {
	if model != m.model {
		return 0, nil
	}
	m.seen = max(m.seen, seen)
	err = vfs.Guard(func() error {
		for _, v := range list {
			if len(v.Vector) == 0 {
				continue
			}
			if m.dim != 0 && len(v.Vector) != m.dim {
				n = 0
				if err := m.dropVectors(); err != nil {
					return err
				}
			}
			if m.dim = len(v.Vector); m.hasVector(v.Hash) {
				continue
			}
			m.added = append(m.added, v)
			delete(m.lacks, v.Hash)
			n++
		}
		return nil
	})
	return n, err
}

// dropVectors removes all vectors, so that all texts lack one.
func (m *Meanings) dropVectors() error {
	m.added, m.dim, m.queue, m.loaded = nil, 0, nil, nil
	clear(m.lacks)
	for _, path := range slices.Sorted(maps.Keys(m.notes)) {
		for i, h := range m.notes[path].hashes {
			if _, ok := m.lacks[h]; !ok {
				m.lacks[h] = section{path, i}
				m.queue = append(m.queue, h)
			}
		}
	}
	return m.release()
}

// Close implements view.View.
func (m *Meanings) Close() error {
	m.begin()
	return m.release()
}

// Verify implements view.View. It verifies all checksums, and that the view has the notes of the index in the same
// versions.
func (m *Meanings) Verify(ctx context.Context, f *view.Folder, set *index.Set) error {
	wrong := func(err error) error {
		return &errs.CorruptionError{Path: f.Path, Offset: -1, Err: err}
	}
	for _, s := range m.segs {
		if err := vfs.Guard(s.check); err != nil {
			return wrong(err)
		}
	}
	n := 0
	for it, err := range set.Range(m.eng.Kinds().Notes.Section, index.Span{}) {
		if err != nil {
			return nil // the index is damaged, not the view
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		path := string(it.Key)
		if note.IsSidecar(path) {
			continue
		}
		line, err := index.ParseLine(it.Value)
		if err != nil {
			return nil
		}
		if n++; m.notes[path].lsn != line.Version {
			return wrong(fmt.Errorf("%w: version %d of note %s is missing", errs.ErrCorrupt, line.Version, human.Quote(path)))
		}
	}
	if n != len(m.notes) {
		return wrong(fmt.Errorf("%w: the view has %d notes, but the index has %d", errs.ErrCorrupt, len(m.notes), n))
	}
	return nil
}

// Purge implements view.Purger.
func (m *Meanings) Purge(*view.Folder) error {
	m.purges, m.change = true, true
	return nil
}
