package varve

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/places"
)

// Look judges files of a folder in which something may have happened. What we put
// there ourselves, in whatever process, is seen by its time and size and costs little.
// What was edited is taken over, or reported and left alone: see judge. absent are the
// names of those that are not there; Gone knows which of them should be. An error ends
// it, and is not about one file.
func (f *Files) Look(ctx context.Context, folder string, names []string) (absent []string, err error) {
	k, st := f.folder(folder), f.st
	if k == nil {
		return nil, nil
	}
	if st.engine.Log.Distrusted() {
		// After an unclean end places may hold anything, until they are written again.
		if err := st.flusher.Flush(ctx, flush.MergeWhenDue); err != nil {
			return nil, err
		}
	}
	before := st.engine.Health.Adoptions()
	if err := st.engine.Log.CatchUp(ctx); err != nil {
		return nil, err
	}
	due, early, absent, err := st.suspects(ctx, k, names)
	if err != nil {
		return absent, err
	}
	if len(early) > 0 { // no other round need come to them: their files may have been put, and a scope's lag
		if err := st.flusher.Flush(context.WithoutCancel(ctx), flush.MergeFiles); err != nil {
			return absent, err
		}
		more, _, gone, err := st.suspects(ctx, k, early)
		due, absent = append(due, more...), append(absent, gone...)
		if err != nil {
			return absent, err
		}
	}
	err = st.judgeAll(ctx, k, due)
	if err != nil || st.engine.Health.Adoptions() == before || ctx.Err() != nil {
		return absent, errors.Join(err, ctx.Err())
	}
	// The next save may come at once: see adoptAside for what that costs before this one
	// is in its file. Half a round is none, so who closes the store waits.
	return absent, st.flusher.Flush(context.WithoutCancel(ctx), flush.MergeWhenDue)
}

// suspects are those among some files, and the names of files that somebody has edited
// before the version that they were made of was flushed, and of files that are not there.
func (st *Store) suspects(ctx context.Context, k *engine.Kind, names []string) (due []suspect, early, absent []string, err error) {
	for _, name := range names {
		if ctx.Err() != nil {
			return due, early, absent, ctx.Err()
		}
		if !engine.DocumentName(name) {
			continue
		}
		s, is, err := st.suspect(ctx, k, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			absent = append(absent, name)
		case errors.Is(err, errs.ErrClosed), ctx.Err() != nil, errors.Is(err, errs.ErrReadOnly):
			return due, early, absent, err
		case err != nil:
			st.reported(k, name, err)
		case is:
			due = append(due, s)
		case s.early:
			early = append(early, name)
		}
	}
	return due, early, absent, nil
}

// suspect is a file that is to be judged: its size and time are not what the index has,
// or the index does not know it.
type suspect struct {
	name, id string
	unknown  bool
	early    bool            // it is none yet: see suspects
	adopted  func(*adoption) // not nil: hears that it was taken over
}

// suspect looks whether a file is one. An absent one is fs.ErrNotExist.
func (st *Store) suspect(ctx context.Context, k *engine.Kind, name string) (s suspect, is bool, err error) {
	s.name = name
	info, err := k.Stat(name)
	if err != nil {
		return s, false, err
	}
	if !info.Mode.IsRegular() {
		return s, false, nil // not a document; a flush that needs the place puts it aside
	}
	s.id = strings.TrimSuffix(name, docfile.Extension)
	if docfile.FileName(s.id) != name { // the name does not say the id
		p, _, err := st.flusher.ParseFile(k, name)
		if err != nil {
			return s, false, err
		}
		s.id = p.ID
	}
	v, flushed, err := st.newestOf(ctx, k, s.id)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		// What waits to be deleted the flush takes away, or aside if it is not ours.
		s.unknown = true
		return s, !st.deletedSince(k, s.id), nil
	case err != nil:
		return s, false, err
	}
	is = !engine.Matches(&v.Line, info)
	if is && !flushed {
		s.early = !st.flusher.Ours(ctx, k, s.id, v.LSN, info, func() ([]byte, error) {
			data, _, err := k.Read(name, places.StoredMost)
			return data, err
		})
	}
	return s, is && flushed, nil
}

// judgeTries is how often files are judged together that somebody writes meanwhile.
const judgeTries = 3

// judgeAll judges files, and takes over many in one commit. Its error is not about one
// of them.
func (st *Store) judgeAll(ctx context.Context, k *engine.Kind, due []suspect) error {
	var again []suspect
	for try := 0; len(due) > 0; try++ {
		if try == judgeTries {
			return st.judgeEach(ctx, k, due)
		}
		for len(due) > 0 {
			n, late, err := st.judgeSome(ctx, k, due)
			if err != nil {
				return err
			}
			due, again = due[n:], append(again, late...)
		}
		due, again = again, nil
	}
	return nil
}

// judgeSome judges as many of the first as one commit takes, under one flush.lock. late
// are those that somebody wrote meanwhile.
func (st *Store) judgeSome(ctx context.Context, k *engine.Kind, due []suspect) (n int, late []suspect, err error) {
	if err := st.engine.Log.LockFlush(ctx); err != nil {
		return 0, nil, err
	}
	defer st.engine.Log.UnlockFlush()
	if err := st.engine.Sight(ctx); err != nil {
		return 0, nil, err
	}
	var list []*verdict
	for bytes := 0; n < len(due) && n < commit.PartsMost && bytes < commit.PartsBytes; n++ {
		if ctx.Err() != nil {
			return n, nil, ctx.Err()
		}
		v := st.verdictOf(ctx, k, &due[n])
		bytes += len(v.version.Doc)
		if v.adopt != nil {
			bytes += len(v.adopt.file)
		}
		list = append(list, v)
	}
	st.carryOut(ctx, k, list)
	for i, v := range list {
		if a := v.adopt; a != nil && a.stood == nil && a.Err == nil && due[i].adopted != nil {
			due[i].adopted(a)
		}
		switch {
		case v.err == nil, errors.Is(v.err, fs.ErrNotExist), errors.Is(v.err, errs.ErrNotFound): // not of this moment any more
		case errors.Is(v.err, errs.ErrClosed), errors.Is(v.err, errs.ErrReadOnly), ctx.Err() != nil:
			return n, nil, v.err
		case errors.Is(v.err, errs.ErrConflict), errors.Is(v.err, engine.ErrMoved), errors.Is(v.err, errs.ErrTruncated):
			late = append(late, due[i])
		default:
			st.reported(k, v.name, v.err)
		}
	}
	return n, late, nil
}

// judgeEach judges each of its own, as who reads it does.
func (st *Store) judgeEach(ctx context.Context, k *engine.Kind, due []suspect) error {
	for _, s := range due {
		_, err := st.engine.Find(ctx, k, s.id, true)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, errs.ErrNotFound):
		case errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrReadOnly), ctx.Err() != nil:
			return err
		default:
			st.reported(k, s.name, err)
		}
	}
	return nil
}

// verdictOf judges a file; flush.lock is held.
func (st *Store) verdictOf(ctx context.Context, k *engine.Kind, s *suspect) *verdict {
	if !s.unknown {
		return st.verdict(ctx, k, s.id)
	}
	v := &verdict{id: s.id, name: s.name}
	p, doc, err := st.flusher.ParseFile(k, s.name)
	if err != nil {
		v.err = err
		return v
	}
	v.id = p.ID
	if _, err := st.engine.Find(ctx, k, p.ID, false); !errors.Is(err, errs.ErrNotFound) || st.deletedSince(k, p.ID) {
		return v // by now it is known
	}
	if _, v.err = k.ParseEdit(doc.Bytes, p.ID); v.err == nil {
		v.adopt, v.err = st.adoption(ctx, k, &p, doc.Bytes, engine.Version{})
	}
	return v
}

// reported tells what could not be taken over, once for each state of a file.
func (st *Store) reported(k *engine.Kind, name string, err error) {
	path := k.Name() + "/" + name
	info, serr := k.Stat(name)
	if serr != nil {
		return
	}
	if !st.engine.Health.TellOnce(path, info, err) {
		return
	}
	st.engine.Env.Logger.Warn("an edit could not be taken over", "path", path, "err", err)
	st.engine.Env.Event(env.Event{Kind: env.EventDrift, Path: path, Err: err, Note: "it stays as it is until it is corrected or replaced"})
}
