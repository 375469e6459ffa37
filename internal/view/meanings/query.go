package meanings

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// Query answers searches by meaning in an open store. An answer includes all commits from before the call. One search
// runs at a time.
type Query struct {
	eng     *engine.Engine
	files   files
	follow  engine.Follower
	damaged func()
}

// NewQuery returns a Query; the caller must Close it. damaged is called when the files are found damaged.
func NewQuery(eng *engine.Engine, damaged func()) *Query {
	q := &Query{eng: eng, files: files{Meanings: newMeanings(eng)}, damaged: damaged}
	q.follow.Fold, q.follow.Stale = &q.files, q.files.stale
	return q
}

// Close releases the mapped files. No call may be in progress.
func (q *Query) Close() error { return q.files.Close() }

// Forget releases the mapped files, unless another call is reading them at that moment.
func (q *Query) Forget() error { return q.follow.Forget(false, q.files.Close) }

// Absent reports whether the view has no data that a search could find: see Meanings.Absent.
func (q *Query) Absent() bool { return q.files.Absent() }

// files is the view as a query keeps it up to date. Its methods are called by one goroutine at a time.
type files struct {
	*Meanings
	there bool   // the files exist, and are by the store's model; otherwise the view has no rows
	newer bool   // the files were replaced, or are by another model by now
	seen  string // the manifest when Reset last ran
}

// stale reports whether the files were replaced since the last Reset, or the vectors are Outdated. A process can add
// vectors or create the files although no index was written.
func (f *files) stale() bool {
	if f.Absent() {
		return false
	}
	b, err := f.eng.ViewFolder(Name).Read(manifestName, manifestMost)
	f.newer = err == nil && string(b) != f.seen || f.Outdated()
	return f.newer
}

// Covered implements view.Fold.
func (f *files) Covered(*index.Set) bool { return !f.newer && f.there }

// Reset implements view.Fold. It never reads all notes: the holder of flush.lock does that when it creates the
// files.
func (f *files) Reset(ctx context.Context, set *index.Set) error {
	f.there, f.newer = false, false
	to, ok := view.MarkOf(set)
	if !ok || f.Absent() {
		f.begin()
		return f.release()
	}
	folder := f.eng.ViewFolder(Name)
	b, _ := folder.Read(manifestName, manifestMost)
	f.seen = string(b)
	at, err := f.Load(folder)
	switch {
	case err != nil && (vfs.IsStarved(err) || vfs.IsUnopened(err)):
		return err
	case err != nil:
		return nil // Load has emptied the view
	case f.Outdated():
		f.begin()
		return f.release()
	case at.LSN >= to.LSN && at != to && f.eng.Log().Spilled() > to.LSN:
		return engine.ErrMoved // a newer index exists
	case at != to:
		err = f.eng.Between(ctx, at, to, func(e *wal.Entry) error { return f.Apply(ctx, nil, e) })
	}
	if errors.Is(err, engine.ErrMoved) || ctx.Err() != nil {
		return err
	}
	if err != nil { // the log no longer reaches back to the files, which are made again
		f.begin()
		return f.release()
	}
	f.there = true
	return nil
}

// damagedTries is the maximum number of times that a search starts again after it found the files damaged.
const damagedTries = 2

// withCaughtUp calls use after it has updated the view with all commits before the call of withCaughtUp.
func (q *Query) withCaughtUp(ctx context.Context, use func() error) error {
	if err := q.eng.CatchUp(ctx); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := q.follow.With(ctx, q.eng, func(*index.Set, int64) error { return vfs.Guard(use) })
		if !errors.Is(err, errs.ErrCorrupt) || try == damagedTries {
			return q.eng.DamageOf(err)
		}
		q.eng.Env().Logger.Warn("the vectors of the sections of notes are damaged; a later flush rebuilds them", "path",
			q.eng.ViewFolder(Name).Path, "err", err)
		q.damaged()
	}
}

// Text is the text of a section that has no vector.
type Text struct {
	Hash Hash
	Text string
}

// Lacks lists texts of sections that have no vector.
type Lacks struct {
	Made   bool // the files of the view exist, or it needs none (Absent); otherwise the lacking texts are unknown
	Texts  []Text
	Unread []Hash // hashes of texts whose notes could not be read, or have another text by now
}

// Lacking returns texts of sections that have no vector, but no more than maxTexts. It omits the texts for which
// skip returns true.
func (q *Query) Lacking(ctx context.Context, maxTexts int, skip func(Hash) bool) (l Lacks, err error) {
	type wanted struct {
		Hash
		section
	}
	var some []wanted
	err = q.withCaughtUp(ctx, func() error {
		f := &q.files
		l.Made, some = f.there || f.Absent(), nil
		queue, chosen := f.queue[:0], map[Hash]bool{}
		for _, h := range f.queue {
			at, ok := f.lacks[h]
			if !ok {
				continue
			}
			queue = append(queue, h)
			if len(some) == maxTexts || chosen[h] || skip(h) {
				continue
			}
			if at.path == "" {
				at = f.one(h)
				f.lacks[h] = at
			}
			some, chosen[h] = append(some, wanted{h, at}), true
		}
		f.queue = queue
		return nil
	})
	slices.SortFunc(some, func(a, b wanted) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.i, b.i)) })
	for _, w := range some {
		v, ferr := q.eng.Find(ctx, q.eng.Kinds().Notes, w.path, true)
		if cerr := ctx.Err(); cerr != nil {
			return Lacks{}, cerr
		}
		if vfs.IsStarved(ferr) || vfs.IsUnopened(ferr) || errors.Is(ferr, errs.ErrClosed) {
			return Lacks{}, ferr // it says nothing of this note
		}
		text, ok := "", false
		if ferr == nil {
			text, ok = textIn(v.Doc, w.i, w.Hash)
		}
		if ok {
			l.Texts = append(l.Texts, Text{w.Hash, text})
		} else {
			l.Unread = append(l.Unread, w.Hash)
		}
	}
	return l, err
}

// textIn returns the text of the i-th section of a note, if the text has the given hash.
func textIn(doc []byte, i int, want Hash) (text string, ok bool) {
	sections := note.Sections(doc)
	if i >= len(sections) {
		return "", false
	}
	text = TextOf(doc, &sections[i])
	return text, hashOf(text) == want
}

// one returns a section that has the text with hash h. If several notes have such a section, it is the one in the note
// whose path sorts first.
func (m *Meanings) one(h Hash) (first section) {
	for path, s := range m.notes {
		if first.path != "" && path > first.path {
			continue
		}
		if i := slices.Index(s.hashes, h); i >= 0 {
			first = section{path, i}
		}
	}
	return first
}

// Waiting returns the number of section texts that have no vector.
func (q *Query) Waiting(ctx context.Context) (n int, err error) {
	err = q.withCaughtUp(ctx, func() error {
		n = len(q.files.lacks)
		return nil
	})
	return n, err
}

// Live returns those vectors in the list whose text is still the text of a section.
func (q *Query) Live(ctx context.Context, list []Vector) (live []Vector, err error) {
	err = q.withCaughtUp(ctx, func() error {
		live = slices.DeleteFunc(slices.Clone(list), func(v Vector) bool { return q.files.used[v.Hash] == 0 })
		return nil
	})
	return live, err
}

// Hit is a section found by a search.
type Hit struct {
	Path    string
	Section int    // index in the result of note.Sections
	LSN     uint64 // version of the note
	Score   float64
}

// chunk is the number of vectors that are compared with the vector of a query at a time.
const chunk = 256

// Search returns the sections that are most similar to the vector v: from each note the best section, for the n
// best notes for which accept returns true, the best first. All of them have a score of at least minScore. Search
// returns no section if the view's vectors are by another model than the store's, or if they cannot be compared
// with v.
func (q *Query) Search(ctx context.Context, v []float32, metric vector.Metric, n int, minScore float64,
	accept func(path string) (bool, error)) (hits []Hit, err error) {
	var all []Hit
	err = q.withCaughtUp(ctx, func() error {
		all = nil
		f := q.files.Meanings
		if f.Outdated() || f.dim != len(v) || f.by != metric {
			return nil
		}
		scores, err := f.scores(ctx, vector.NewScorer(metric, v))
		if err != nil {
			return err
		}
		for path, s := range f.notes {
			best := Hit{Score: minScore, Section: -1}
			for i, h := range s.hashes {
				if score, ok := scores[h]; ok && (score > best.Score || best.Section < 0 && score >= minScore) {
					best = Hit{path, i, s.lsn, score}
				}
			}
			if best.Section >= 0 {
				all = append(all, best)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path)) })
	for _, h := range all {
		if len(hits) == n {
			break
		}
		ok, err := accept(h.Path)
		if err != nil {
			return nil, err
		}
		if ok {
			hits = append(hits, h)
		}
	}
	return hits, nil
}

// scores returns the scores, according to scorer, of all texts that have a vector.
func (m *Meanings) scores(ctx context.Context, scorer *vector.Scorer) (map[Hash]float64, error) {
	scores := make(map[Hash]float64, len(m.used))
	var out []float64
	for _, s := range m.segs {
		for from := 0; from < s.Vectors; from += chunk {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			to := min(from+chunk, s.Vectors)
			out = scorer.Scores(out[:0], s.rows[from*4*s.dim:to*4*s.dim])
			for i, score := range out {
				if h := Hash(s.hash(from + i)); m.used[h] > 0 && score >= -1 {
					scores[h] = score
				}
			}
		}
	}
	return scores, nil
}
