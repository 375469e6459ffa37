package words

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/internal/words/rows"
	"github.com/varve-db/varve/internal/yield"
	"github.com/varve-db/varve/wal"
)

// Name is the name of the view of words.
const Name = "words"

// The limits of a segment (mostRows, mostBytes), and of the changes that wait in memory before they become a segment
// (pendingRows, pendingSize). A view that writes files lets filingTimes as many changes wait as a view that is queried,
// since each segment is merged several times.
const (
	mostRows    = 1 << 17
	mostBytes   = 64 << 20
	pendingRows = 1 << 12
	pendingSize = 8 << 20
	filingTimes = 4
)

// halvesLeast is the minimum number of rows for which two goroutines work at the same time, each of which makes a
// segment of half of the rows.
const halvesLeast = 1 << 10

// decodedTimes is the memory needed to find the words of a document, as a multiple of its size: for its bytes, its text
// and the terms.
const decodedTimes = 3

// Words is the view that contains the word index of memories, or of note sections.
type Words struct {
	eng     *engine.Engine
	of      subject
	an      *analyzer.Analyzer
	built   *build.Builder // the previous builder, reused because it knows words
	other   *build.Builder // the previous builder of a second goroutine, for the analyzer otherOf
	otherOf *analyzer.Analyzer
	sources *query.Sources
	set     *words.Set
	next    uint64 // number of the next segment

	lean    bool                    // new rows have only the sort keys of their documents, and no words
	pending map[string][]*words.Doc // rows of documents that are not in set yet; nil: the document was deleted
	size    int                     // size of pending in bytes
	// factor for the limits of pending: filingTimes for a view that writes files, otherwise 1
	times   int
	written []string // files that the manifest does not list yet
	untidy  bool     // there may be files that the manifest no longer lists

	turns  yield.Turns        // lets other goroutines run during long computations
	maps   map[string]*mapped // mapped files by name
	purged bool               // the next Save removes all other files
	loaded []byte             // manifest of the loaded files
	at     wal.Mark           // log position of the loaded files
}

// New implements views.Maker: it returns the view of the words in memories.
func New(eng *engine.Engine) view.View { return newWords(eng, memories{}, filingTimes) }

func newWords(eng *engine.Engine, subj subject, times int) *Words {
	w := &Words{eng: eng, of: subj, times: times}
	w.begin()
	return w
}

// begin empties the view. Its files stay mapped until Close or the next Load.
func (w *Words) begin() {
	c := w.eng.Settings().Now()
	w.an, w.sources, w.set, w.next = w.an.For(c.Language(), w.terms()), c.Sources(), words.NewSet(), w.of.first()
	w.pending, w.size, w.loaded = map[string][]*words.Doc{}, 0, nil
	if w.maps == nil {
		w.maps = map[string]*mapped{}
	}
}

// inFiles returns the version of the terms that files of the store must have. As long as a program that knows only the
// first version may write to the store, this is the first version.
func (w *Words) inFiles() int {
	if log := w.eng.Log(); log != nil && log.Features()&wal.FeatureTerms != 0 { // nil while the store is being opened
		return analyzer.Terms
	}
	return analyzer.FirstTerms
}

// terms returns the version of the terms for new segments. Segments that are never written to files have the newest
// version.
func (w *Words) terms() int {
	if w.times == filingTimes {
		return w.inFiles()
	}
	return analyzer.Terms
}

// Outdated reports whether the content does not match the settings (language or fields), has segments of the first
// format, which have no sort orders, or has terms of an older version than the store's files must have.
func (w *Words) Outdated() bool {
	return !rows.Sorted(w.set) || w.an.Version() < w.inFiles() ||
		w.an.Language()+" "+w.sources.Given() != w.eng.Settings().Now().Words()
}

// OutdatedIn reports whether the view's files in a folder do not match the settings (language or fields), have terms
// of an older version than the store's files must have, or were made by other rules for dividing documents into rows.
// It reads only the manifest, and returns false if the manifest cannot be read.
func (w *Words) OutdatedIn(f *view.Folder) bool {
	b, err := f.Read(manifestName, manifestMost)
	if err != nil {
		return false
	}
	m, err := parseManifest(b)
	return err == nil && (m.terms() < w.inFiles() || m.Cut != w.of.cut() ||
		m.Language+" "+m.Fields != w.eng.Settings().Now().Words())
}

// Name implements view.View.
func (w *Words) Name() string { return w.of.name() }

// Covered implements view.Fold: it returns true, because the content stays valid with a newer index. It returns false
// if the content is Outdated, and if much of the content is only in memory: then the files, which have this content by
// then, are loaded.
func (w *Words) Covered(*index.Set) bool {
	return !w.Outdated() && w.few()
}

// few reports whether fewer than pendingRows rows are only in memory.
func (w *Words) few() bool {
	rows, _ := w.loose()
	return rows < pendingRows
}

// loose returns the number of rows that are only in memory, and the bytes of their segments.
func (w *Words) loose() (rows, size int) {
	for _, p := range w.set.Parts() {
		if p.Name == "" {
			rows += p.Seg.Rows
			size += p.Seg.Size()
		}
	}
	return rows, size
}

// Apply implements view.Fold: it adds the document in a log entry to the view, or removes the deleted document.
func (w *Words) Apply(ctx context.Context, _ *index.Set, e *wal.Entry) error {
	if w.eng.Kinds().Of(e.Key) != w.of.kind(w.eng) || !w.of.hasRows(e.Key[1:]) {
		return nil
	}
	id := strings.Clone(e.Key[1:])
	if e.Delete {
		return w.change(ctx, id, nil)
	}
	line, rec, err := state.LineIn(e)
	if err != nil {
		return err
	}
	give, err := w.eng.Codec().Take(ctx, decodedTimes*int64(rec.Size()))
	if err != nil {
		return err
	}
	d := w.unread(id, &line, e.LSN)
	if doc, err := w.eng.Codec().Doc(&rec, places.StoredMost); err == nil {
		d = w.decode(id, doc, &line, e.LSN)
	}
	give()
	return w.change(ctx, id, d)
}

// decode returns the rows for a document, with their words. It takes ownership of doc.
func (w *Words) decode(id string, doc []byte, line *index.Entry, lsn uint64) []*words.Doc {
	docs := w.of.rows(w, id, doc, line, lsn)
	for _, d := range docs {
		if d.Line = lineOf(line); w.lean {
			d.Texts = nil
		}
	}
	return docs
}

// unread returns the rows of a document that cannot be read: one row without words.
func (w *Words) unread(id string, line *index.Entry, lsn uint64) []*words.Doc {
	if w.of.cut() > 0 {
		return w.of.rows(w, id, nil, line, lsn)
	}
	return []*words.Doc{unread(id, line, lsn)}
}

// change records that the given rows replace the previous rows of a document. The rows are nil if the document was
// deleted.
func (w *Words) change(ctx context.Context, id string, docs []*words.Doc) error {
	if old := w.pending[id]; docs != nil && old != nil && old[0].LSN >= docs[0].LSN {
		return nil // applied already
	}
	w.turns.Give() // decoding takes about as long as a turn
	w.pending[id] = docs
	size := 0
	for _, d := range docs {
		size += d.Bytes()
	}
	if w.size += len(id) + 100 + size; len(w.pending) >= w.mostPending() || w.size >= w.times*pendingSize ||
		size >= pendingSize {
		if w.times == 1 {
			ctx = context.Background() // a search continues, as in files.settle
		}
		return vfs.Guard(func() error { return w.seal(ctx) }) // seal reads mapped files
	}
	return nil
}

// mostPending returns the number of changed documents that may wait in w.pending: when it is reached, change makes
// segments from them.
func (w *Words) mostPending() int {
	if w.halves() {
		return 2 * pendingRows
	}
	return w.times * pendingRows
}

// seal makes segments from the pending changes: one segment, or two segments if there are many changes. When ctx ends,
// seal ends with the error of ctx, and the changes stay pending.
func (w *Words) seal(ctx context.Context) error {
	if len(w.pending) == 0 {
		return nil
	}
	b := w.builder()
	var ids []string
	for id := range w.pending {
		ids = append(ids, id)
	}
	has, of, err := w.of.old(w.set, ids)
	if err != nil {
		return err
	}
	var docs []*words.Doc
	var remove []string
	for i, id := range ids {
		now := w.pending[id]
		if now != nil && has[i] >= now[0].LSN {
			continue // applied already
		}
		switch docs = append(docs, now...); {
		case of != nil:
			remove = append(remove, of[i]...)
		case now == nil:
			remove = append(remove, id)
		}
	}
	slices.SortFunc(docs, (*words.Doc).Compare) // so that the builder has nothing left to sort
	var behind []*words.Doc
	if w.halves() && len(docs) >= halvesLeast {
		docs, behind = docs[:len(docs)/2], docs[len(docs)/2:]
	}
	segments, err := w.segments(ctx, b, docs, behind)
	if err != nil {
		return err
	}
	for i, seg := range segments {
		if i > 0 {
			remove = nil
		}
		if err := w.add(seg, remove); err != nil {
			return err
		}
	}
	w.pending, w.size, w.built = map[string][]*words.Doc{}, 0, b
	return nil
}

// halves reports whether two goroutines may each make a segment from half of the pending changes. The sections of a
// note must be in one segment, so halves returns false for sections. A view that writes files needs only one goroutine,
// because no caller waits for it.
func (w *Words) halves() bool {
	return w.times == 1 && !w.lean && w.of.cut() == 0 && !w.eng.Env().System.Inline && runtime.GOMAXPROCS(0) > 1
}

// segments returns a segment that the builder b makes from docs; the segment is nil if docs is empty. If rest is
// not empty, a second goroutine makes another segment from rest at the same time. segments ends with the error of ctx
// when ctx ends.
func (w *Words) segments(ctx context.Context, b *build.Builder, docs, rest []*words.Doc) ([]*words.Segment, error) {
	segment := func(b *build.Builder, docs []*words.Doc) (*words.Segment, error) {
		for _, d := range docs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			b.Add(d)
		}
		return segmentOf(ctx, b)
	}
	if len(rest) == 0 {
		seg, err := segment(b, docs)
		return []*words.Segment{seg}, err
	}
	other := w.other
	if w.other = nil; other == nil || w.otherOf != w.an {
		other, w.otherOf = build.NewBuilder(w.an.Again()), w.an
	}
	list := make([]*words.Segment, 2)
	var g errgroup.Group
	g.Go(func() (err error) { list[1], err = segment(other, rest); return err })
	var err error
	list[0], err = segment(b, docs)
	if err = errors.Join(err, g.Wait()); err == nil {
		w.other = other
	}
	return list, err
}

// builder returns an empty builder of segments. If building succeeds, the caller should store the builder in w.built,
// so that the next build can use the words that this builder already knows. If building fails, the caller must not
// store it.
func (w *Words) builder() *build.Builder {
	b := w.built
	if w.built = nil; b == nil || b.Analyzer() != w.an {
		b = build.NewBuilder(w.an)
	}
	return b
}

// segmentOf returns the segment of a builder; nil if it has no documents.
func segmentOf(ctx context.Context, b *build.Builder) (*words.Segment, error) {
	w, err := b.Writer(ctx)
	if w == nil || err != nil {
		return nil, err
	}
	return words.OpenSegment(w.Bytes())
}

// addNew adds the segment of a builder to the set. The set must not have any of the segment's documents yet.
func (w *Words) addNew(ctx context.Context, b *build.Builder) error {
	seg, err := segmentOf(ctx, b)
	if err != nil {
		return err
	}
	return w.add(seg, nil)
}

// add adds a segment to the set. The segment's rows replace older rows of the same documents. add also removes the rows
// with the ids in remove. seg may be nil.
func (w *Words) add(seg *words.Segment, remove []string) error {
	set, err := w.set.With(w.next, seg, remove)
	if err != nil {
		return err
	}
	w.set = set
	w.next++
	return nil
}

// Close implements view.View: it releases the mapped files.
func (w *Words) Close() (err error) {
	w.begin()
	w.built, w.other, w.otherOf = nil, nil, nil
	for name, m := range w.maps {
		delete(w.maps, name)
		err = errors.Join(err, m.release())
	}
	return err
}

// Verify implements view.View: it verifies all checksums, and that the rows are those of the documents of the index.
func (w *Words) Verify(ctx context.Context, f *view.Folder, set *index.Set) error {
	err := vfs.Guard(func() error { return w.verify(ctx, set) })
	if errors.Is(err, errs.ErrCorrupt) {
		return &errs.CorruptionError{Path: f.Path, Offset: -1, Err: err}
	}
	return err
}

func (w *Words) verify(ctx context.Context, set *index.Set) error {
	for _, p := range w.set.Parts() {
		if err := errors.Join(p.Seg.Check(), rows.Check(p.Seg)); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	has, _ := w.set.Docs()
	n, looked := int64(0), 0
	for it, err := range set.Range(w.of.kind(w.eng).Section, index.Span{}) {
		if err != nil {
			return nil // the index is damaged, not the view
		}
		if looked++; looked%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !w.of.hasRows(string(it.Key)) {
			continue
		}
		line, err := index.ParseLine(it.Value)
		if err != nil {
			return nil
		}
		of, err := w.matches(string(it.Key), &line)
		if err != nil {
			return err
		}
		n += int64(of)
	}
	if n != has {
		return fmt.Errorf("%w: the view has %d rows, but the index requires %d", errs.ErrCorrupt, has, n)
	}
	return nil
}

// mapped is a mapped file with a reference count.
type mapped struct {
	m    vfs.Mapping
	sum  string // checksum of the segment in the file, in hexadecimal
	refs atomic.Int32
	once sync.Once
}

func (m *mapped) release() (err error) {
	if m.refs.Add(-1) == 0 {
		m.once.Do(func() { err = m.m.Close() })
	}
	return err
}
