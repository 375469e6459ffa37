package words

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/internal/words/rows"
	"github.com/varve-db/varve/wal"
)

// Query answers word searches in an open store. An answer includes all commits before the call.
type Query struct {
	eng     *engine.Engine
	files   files
	follow  engine.Follower
	damaged func()
	loose   atomic.Int64 // number of rows that are only in memory: see Loose
}

// NewQuery returns a new Query of memories; the caller must Close it. damaged is called when the files are found
// damaged.
func NewQuery(eng *engine.Engine, damaged func()) *Query { return newQuery(eng, memories{}, damaged) }

// NewSectionsQuery returns a new Query of the sections of notes; the caller must Close it. damaged is called when the
// files are found damaged.
func NewSectionsQuery(eng *engine.Engine, damaged func()) *Query {
	return newQuery(eng, sections{}, damaged)
}

func newQuery(eng *engine.Engine, subj subject, damaged func()) *Query {
	q := &Query{eng: eng, files: files{Words: newWords(eng, subj, 1)}, damaged: damaged}
	q.follow.Fold, q.follow.Stale = &q.files, q.files.stale
	return q
}

// Close releases the mapped files. No call may be in progress.
func (q *Query) Close() error { return q.files.Close() }

// Loose returns the number of rows that the last search found only in memory, because they were not in the files yet.
func (q *Query) Loose() int { return int(q.loose.Load()) }

// Forget releases the mapped files, unless a call is reading them at the moment.
func (q *Query) Forget() error { return q.follow.Forget(false, q.files.Close) }

// Snapshot is the data of one search at one moment: the rows, and the analyzer that made the rows' words.
type Snapshot struct {
	Set      *words.Set
	Analyzer *analyzer.Analyzer
	From     *query.Sources                          // the members of a memory that each field takes its words from
	Each     func(n int, do func(i int) error) error // see words.Filter
	maps     []*mapped
	lean     bool // parts of the set that are not in files have no words
	sections bool // the rows are sections of notes, not memories
}

// OfSections reports whether the rows of the snapshot are sections of notes.
func (s *Snapshot) OfSections() bool { return s.sections }

// Release releases the mapped files of the snapshot.
func (s *Snapshot) Release() (err error) {
	for _, m := range s.maps {
		err = errors.Join(err, m.release())
	}
	return err
}

// besideLeast is the number of documents from which on segments are searched in parallel; with fewer, starting
// goroutines costs more than it saves.
const besideLeast = 1 << 15

// runParallel calls fn with the numbers 0 to n-1, in at most GOMAXPROCS goroutines at a time. It returns the first
// error.
func runParallel(n int, fn func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { return vfs.Guard(func() error { return fn(i) }) })
	}
	return g.Wait()
}

// snapshot returns a snapshot that includes all commits before the call. The caller must release the snapshot.
func (q *Query) snapshot(ctx context.Context) (s *Snapshot, err error) {
	err = q.follow.With(ctx, q.eng, func(*index.Set, int64) error {
		err := vfs.Guard(q.files.settle)
		if err != nil {
			return err
		}
		rows, _ := q.files.loose()
		q.loose.Store(int64(rows))
		s = &Snapshot{Set: q.files.set, Analyzer: q.files.an.Again(), From: q.files.sources,
			sections: q.files.of.cut() > 0}
		if n, _ := s.Set.Docs(); n >= besideLeast && !q.eng.Env().System.Inline {
			s.Each = runParallel
		}
		for _, m := range q.files.maps {
			m.refs.Add(1)
			s.maps = append(s.maps, m)
		}
		return nil
	})
	return s, q.eng.DamageOf(err)
}

// damagedTries is how often With rebuilds damaged content and searches again.
const damagedTries = 2

// With calls use with a snapshot. If the snapshot is damaged, which With or use may notice, With calls use with a new
// snapshot that was built from the documents.
func (q *Query) With(ctx context.Context, use func(*Snapshot) error) error {
	if err := q.eng.CatchUp(ctx); err != nil {
		return err
	}
	for try := 0; ; try++ {
		s, err := q.snapshot(ctx)
		if err == nil {
			err = vfs.Guard(func() error { return use(s) })
			if rerr := s.Release(); err == nil {
				err = rerr
			}
		}
		if !errors.Is(err, errs.ErrCorrupt) || try == damagedTries {
			return err
		}
		q.found(err)
	}
}

// found logs that a snapshot is damaged, and ensures that the next snapshot is built from the documents.
func (q *Query) found(err error) {
	q.eng.Env().Logger.Warn("the word index is damaged; rebuilding it in memory from the documents", "path",
		q.eng.ViewFolder(q.files.of.name()).Path, "err", err)
	q.distrust()
	q.damaged()
}

// WithBoth calls use with a snapshot of each of two queries. If a snapshot is damaged, WithBoth finds out which one,
// and calls use again, with a new snapshot in its place, as With does.
func WithBoth(ctx context.Context, a, b *Query, use func(a, b *Snapshot) error) error {
	if err := a.eng.CatchUp(ctx); err != nil {
		return err
	}
	for try := 0; ; try++ {
		of, err := withSnapshots(ctx, a, b, use)
		if !errors.Is(err, errs.ErrCorrupt) || try == 2*damagedTries {
			return err
		}
		for _, q := range of {
			q.found(err)
		}
	}
}

// withSnapshots calls use with snapshots of two queries. If use returns errs.ErrCorrupt, withSnapshots returns the
// queries whose snapshot is damaged, or both queries if it cannot tell which snapshot is damaged.
func withSnapshots(ctx context.Context, a, b *Query, use func(a, b *Snapshot) error) (damaged []*Query, err error) {
	var snaps []*Snapshot
	defer func() {
		for _, s := range snaps {
			if rerr := s.Release(); err == nil {
				err = rerr
			}
		}
	}()
	queries := []*Query{a, b}
	for _, q := range queries {
		s, err := q.snapshot(ctx)
		if err != nil {
			return []*Query{q}, err
		}
		snaps = append(snaps, s)
	}
	if err = vfs.Guard(func() error { return use(snaps[0], snaps[1]) }); !errors.Is(err, errs.ErrCorrupt) {
		return nil, err
	}
	for i, s := range snaps {
		if vfs.Guard(s.check) != nil {
			damaged = append(damaged, queries[i])
		}
	}
	if len(damaged) == 0 {
		damaged = queries
	}
	return damaged, err
}

// check verifies all checksums and the sort orders of the segments in the snapshot.
func (s *Snapshot) check() error {
	for _, p := range s.Set.Parts() {
		if err := errors.Join(p.Seg.Check(), rows.Check(p.Seg)); err != nil {
			return err
		}
	}
	return nil
}

// Place is a position in a session: the position of an existing memory, or of a memory that is about to be written.
type Place struct {
	Session string
	Time    int64 // time in microseconds since 1970
	ID      string
}

// Before returns, for each place in list, the id of the memory before that place in the place's session, or "" if
// no memory of the session is before the place. It skips the memories in except.
func (q *Query) Before(ctx context.Context, list []Place, except map[string]bool) (ids []string, err error) {
	err = q.With(ctx, func(s *Snapshot) (err error) {
		ids = make([]string, len(list))
		for i, p := range list {
			if ids[i], _, err = s.Set.Before(p.Session, p.Time, p.ID, except); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

// distrust makes the next snapshot be rebuilt from the documents, because the files are damaged.
func (q *Query) distrust() {
	_ = q.follow.Forget(true, func() error {
		q.files.bad = q.files.seen
		return nil
	})
}

// files is the word index of a query. It is a fold that the query keeps up to date. Its methods are called by one
// goroutine at a time.
type files struct {
	*Words
	seen string   // the manifest that was loaded last
	bad  string   // a manifest that must not be used because its files are damaged
	wait wal.Mark // position of the index whose files are expected; zero if they exist or are not needed
	look string   // last manifest that was seen while waiting
}

// Covered implements view.Fold: it reports whether the content stays valid with a newer index.
func (f *files) Covered(set *index.Set) bool { return !f.Outdated() && f.goesOn(set) }

// goesOn reports whether the view keeps its content although there is a newer index. If much of the content is only in
// memory, the view should load the files instead, which will have the same content. But the files are written some
// seconds after the index. If the view dropped its content before that, every process that searches would read all
// entries that the newer index contains from the log again, at the moment when the process that writes the files needs
// the processors. So the view keeps its content and waits for the files, unless it has too much in memory.
func (f *files) goesOn(set *index.Set) bool {
	f.wait, f.look = wal.Mark{}, ""
	n, size := f.loose()
	if n < pendingRows {
		return true
	}
	to, ok := view.MarkOf(set)
	if !ok || n >= mostRows || size >= mostBytes {
		return false
	}
	f.wait = to
	return !f.came()
}

// came reports whether the view waits for files (see goesOn), and the files for the newer index exist now.
func (f *files) came() bool {
	if f.wait == (wal.Mark{}) {
		return false
	}
	b, err := f.eng.ViewFolder(f.of.name()).Read(manifestName, manifestMost)
	if err != nil || string(b) == f.look {
		return false
	}
	f.look = string(b)
	m, err := parseManifest(b)
	return err == nil && f.wait == wal.Mark{LSN: m.LSN, Sum: m.Sum}
}

// settle makes pending changes searchable, and merges the small segments that are only in memory. It does not end with
// the context of a search: searches with short time limits would begin the same segment again and again.
func (f *files) settle() error {
	ctx := context.Background()
	if err := f.seal(ctx); err != nil {
		return err
	}
	_, err := f.merge(ctx, deadInMemory, func(p *words.Part) bool { return p.Name == "" })
	return err
}

// stale reports whether the view should load newer files. If the loaded files match the settings, it waits for the
// files as of the newer index (see came). If they do not match, any other files are better: a flush writes such files
// after a change of the settings, even if the index itself does not change.
func (f *files) stale() bool {
	if !f.Outdated() {
		return f.came()
	}
	b, err := f.eng.ViewFolder(f.of.name()).Read(manifestName, manifestMost)
	return err == nil && string(b) != f.seen
}

// Reset implements view.Fold: it loads the files, or builds the content from the documents.
func (f *files) Reset(ctx context.Context, set *index.Set) error {
	if ok, err := f.resume(ctx, set); ok || err != nil {
		return err
	}
	return f.Words.Reset(ctx, set)
}

// resume loads the files of the view and continues from them. It returns false if the files are unusable, and an error
// if the files may be usable later.
func (f *files) resume(ctx context.Context, set *index.Set) (bool, error) {
	f.wait = wal.Mark{}
	to, ok := view.MarkOf(set)
	if !ok {
		return false, nil
	}
	at, err := f.Load(f.eng.ViewFolder(f.of.name()))
	f.seen = string(f.loaded)
	if bad := f.bad != "" && f.seen == f.bad; err == nil && !bad {
		if err = f.from(ctx, at, to); err == nil || errors.Is(err, engine.ErrMoved) || ctx.Err() != nil {
			return err == nil, err
		}
	}
	if err != nil && (vfs.IsStarved(err) || vfs.IsUnopened(err)) {
		return false, err
	}
	return false, nil
}

// from applies the log entries between the mark start, up to which the files cover the log, and the mark end, up
// to which the index covers the log.
func (f *files) from(ctx context.Context, start, end wal.Mark) error {
	switch {
	case start == end:
		return nil
	case start.LSN >= end.LSN && f.eng.Log().Spilled() > end.LSN:
		return engine.ErrMoved // a newer index exists
	}
	return f.eng.Between(ctx, start, end, func(e *wal.Entry) error { return f.Apply(ctx, nil, e) })
}
