package words

import (
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/wal"
)

// Query answers from an open store, as of each call or later.
type Query struct {
	eng     *engine.Engine
	files   files
	follow  engine.Follower
	damaged func()
}

// NewQuery makes one; Close it. damaged is called when the files turn out to be so.
func NewQuery(eng *engine.Engine, damaged func()) *Query {
	q := &Query{eng: eng, files: files{Words: newWords(eng, 1)}, damaged: damaged}
	q.follow.Fold, q.follow.Stale = &q.files, q.files.stale
	return q
}

// Close releases what is mapped. No call may be under way.
func (q *Query) Close() error { return q.files.Close() }

// Forget releases what is mapped, unless a call is just looking for what there is.
func (q *Query) Forget() error { return q.follow.Forget(false, q.files.Close) }

// Snapshot is what there is to search at a moment.
type Snapshot struct {
	Set      *words.Set
	Analyzer *analyzer.Analyzer
	From     *query.Sources                          // of the fields
	Each     func(n int, do func(i int) error) error // for words.Filter
	maps     []*mapped
	lean     bool // parts without files have no words
}

// Release gives it back.
func (s *Snapshot) Release() (err error) {
	for _, m := range s.maps {
		err = errors.Join(err, m.release())
	}
	return err
}

// besideLeast is from how many documents on the segments are searched side by side: below, what that
// costs is more than what it saves.
const besideLeast = 1 << 15

// beside calls do with 0 to n-1, as many at a time as there are processors.
func beside(n int, do func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { return vfs.Guard(func() error { return do(i) }) })
	}
	return g.Wait()
}

// snapshot is of now, or of later. It must be released.
func (q *Query) snapshot(ctx context.Context) (s *Snapshot, err error) {
	err = q.follow.With(ctx, q.eng, func(*index.Set, int64) error {
		err := vfs.Guard(q.files.settle)
		if err != nil {
			return err
		}
		s = &Snapshot{Set: q.files.set, Analyzer: q.files.an.Again(), From: q.files.sources}
		if n, _ := s.Set.Docs(); n >= besideLeast && !q.eng.Env().System.Inline {
			s.Each = beside
		}
		for _, m := range q.files.maps {
			m.refs.Add(1)
			s.maps = append(s.maps, m)
		}
		return nil
	})
	return s, q.eng.DamageOf(err)
}

// damagedTries is how often what a search finds damaged is made again for it.
const damagedTries = 2

// With calls use with what there is to search. Where that turns out to be damaged, use is called again
// with what is made from the documents.
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
		q.eng.Env().Logger.Warn("the words of the memories are damaged; they are read from the documents", "path",
			q.eng.ViewFolder(Name).Path, "err", err)
		q.distrust()
		q.damaged()
	}
}

// Place is where something is, or would be, in a session.
type Place struct {
	Session string
	Time    int64 // in microseconds since 1970
	ID      string
}

// Before finds the ids of what is before some places in their sessions, "" where nothing is; those of
// except do not count.
func (q *Query) Before(ctx context.Context, of []Place, except map[string]bool) (ids []string, err error) {
	err = q.With(ctx, func(s *Snapshot) (err error) {
		ids = make([]string, len(of))
		for i, p := range of {
			if ids[i], _, err = s.Set.Before(p.Session, p.Time, p.ID, except); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

// distrust has the next snapshot made from the documents.
func (q *Query) distrust() {
	_ = q.follow.Forget(true, func() error {
		q.files.bad = q.files.seen
		return nil
	})
}

// files is the view as a query follows it, which calls it one at a time.
type files struct {
	*Words
	seen string   // the manifest that was loaded last
	bad  string   // the manifest that is not believed
	wait wal.Mark // of the index whose files are to come; none where they are there, or are not needed
	look string   // the manifest that had not come so far
}

// Covered implements view.Fold.
func (f *files) Covered(set *index.Set) bool { return !f.Outdated() && f.goesOn(set) }

// goesOn reports whether it goes on with what it has over a newer index. Where much of that is in memory, it
// begins again with the files, which have it too. But files follow an index by seconds: before they
// are there, all that the index took in would be read from the log once more, by each process that
// searches, and just when the one that makes them needs the processors. So it waits for them, up to
// a bound.
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

// came reports whether the files have come to where it waits for them.
func (f *files) came() bool {
	if f.wait == (wal.Mark{}) {
		return false
	}
	b, err := f.eng.ViewFolder(Name).Read(manifestName, manifestMost)
	if err != nil || string(b) == f.look {
		return false
	}
	f.look = string(b)
	m, err := parseManifest(b)
	return err == nil && f.wait == wal.Mark{LSN: m.LSN, Sum: m.Sum}
}

// settle makes what is pending searchable; small segments in memory are merged.
func (f *files) settle() error {
	if err := f.seal(); err != nil {
		return err
	}
	_, err := f.merge(deadInMemory, func(p *words.Part) bool { return p.Name == "" })
	return err
}

// stale reports whether the files that it waits for are there, or other ones than those that were loaded, which
// are not in the language of the settings: a flush that had nothing to write into the index has made them.
func (f *files) stale() bool {
	if !f.Outdated() {
		return f.came()
	}
	b, err := f.eng.ViewFolder(Name).Read(manifestName, manifestMost)
	return err == nil && string(b) != f.seen
}

// Reset implements view.Fold.
func (f *files) Reset(ctx context.Context, set *index.Set) error {
	if ok, err := f.resume(ctx, set); ok || err != nil {
		return err
	}
	return f.Words.Reset(ctx, set)
}

// resume begins with the files; false where they are not used. It fails where they may be later.
func (f *files) resume(ctx context.Context, set *index.Set) (bool, error) {
	f.wait = wal.Mark{}
	to, ok := view.MarkOf(set)
	if !ok {
		return false, nil
	}
	at, err := f.Load(f.eng.ViewFolder(Name))
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

// from reads what the log has between the files and the index.
func (f *files) from(ctx context.Context, at, to wal.Mark) error {
	switch {
	case at == to:
		return nil
	case at.LSN >= to.LSN && f.eng.Log().Spilled() > to.LSN:
		return engine.ErrMoved // a newer index is there
	}
	return f.eng.Between(ctx, at, to, func(e *wal.Entry) error { return f.Apply(ctx, nil, e) })
}
