package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/rebuild"
	"github.com/varve-db/varve/wal"
)

// Look decides about files of a folder that may have changed. Look recognizes files that the store wrote, in any
// process, by their time and size, which costs little. It adopts edited files, or reports them and leaves them in
// place: see JudgeEdit. absent has the names of files that do not exist; Gone finds out which of these files should
// exist. An error means that the call has ended early; it is never about a single file. For a kind with FileWins (see
// kind.Kind), Look waits before it decides about a file that has just been emptied.
func (f *Files) Look(ctx context.Context, folder string, names []string) (absent []string, err error) {
	k := f.folder(folder)
	if k == nil {
		return nil, nil
	}
	names, emptied, wait := f.ed.emptied(k, f.ed.normal(k, names))
	if absent, err = f.look(ctx, k, names); err != nil || len(emptied) == 0 {
		return absent, err
	}
	if err := f.ed.engine.Env().Sleep(ctx, wait); err != nil {
		return absent, err
	}
	more, err := f.look(ctx, k, emptied)
	return append(absent, more...), err
}

// LookNow does what Look does, but does not wait for files that have just been emptied: it does not decide about these
// files, and returns their names in emptied. The caller checks these files again later.
func (f *Files) LookNow(ctx context.Context, folder string, names []string) (absent, emptied []string, err error) {
	k := f.folder(folder)
	if k == nil {
		return nil, nil, nil
	}
	names, emptied, _ = f.ed.emptied(k, f.ed.normal(k, names))
	absent, err = f.look(ctx, k, names)
	return absent, emptied, err
}

// emptied divides names in two. now has the files about which a decision is possible now. emptied has the files that
// have just been emptied, because an editor that saves in place empties a file first. After the time wait, the files
// in emptied have their contents again, or are empty on purpose. For a kind without FileWins (see kind.Kind), now has
// all names.
func (ed *Adopter) emptied(k *engine.Kind, names []string) (now, emptied []string, wait time.Duration) {
	if !k.FileWins {
		return names, nil, 0
	}
	for _, name := range names {
		info, err := k.Stat(name)
		age := ed.engine.Env().Clock().Sub(info.Mtime)
		if err != nil || !info.Mode.IsRegular() || info.Size > 0 || age < 0 || age >= quietFor {
			now = append(now, name)
			continue
		}
		emptied, wait = append(emptied, name), max(wait, quietFor-age)
	}
	return now, emptied, wait
}

// look does what Look does, but does not wait for files that have just been emptied.
func (f *Files) look(ctx context.Context, k *engine.Kind, names []string) (absent []string, err error) {
	ed := f.ed
	if err := ed.engine.Log().Folder().InPlace(); err != nil { // the files belong to the next log by now
		return nil, err
	}
	if ed.engine.Log().Notes().Distrusted() {
		// After an unclean end, places may have any contents until they are written again.
		if err := ed.flusher.FlushFiles(ctx, flush.MergeWhenDue); err != nil {
			return nil, err
		}
	}
	before := ed.engine.Health().Adoptions()
	if err := ed.engine.Log().CatchUp(ctx); err != nil {
		return nil, err
	}
	due, early, absent, err := ed.suspects(ctx, k, names)
	if err != nil {
		return absent, err
	}
	if len(early) > 0 { // no other round need reach them: their files may have been put, while a scope lags
		if err := ed.flusher.FlushFiles(context.WithoutCancel(ctx), flush.MergeFiles); err != nil {
			return absent, err
		}
		more, _, gone, err := ed.suspects(ctx, k, early)
		due, absent = append(due, more...), append(absent, gone...)
		if err != nil {
			return absent, err
		}
	}
	err = ed.JudgeAll(ctx, k, due)
	if err != nil || ed.engine.Health().Adoptions() == before || ctx.Err() != nil {
		return absent, errors.Join(err, ctx.Err())
	}
	// The next save may come at once: see AdoptAside for the cost of a save before this version is in its file. The
	// round must not be canceled, so closing the store waits.
	return absent, ed.flusher.FlushFiles(context.WithoutCancel(ctx), flush.MergeWhenDue)
}

// suspects examines files by name. due are the files that differ from the index. early are the names of files that were
// edited before the version that they are based on was flushed. absent are the names of files that do not exist.
func (ed *Adopter) suspects(ctx context.Context, k *engine.Kind,
	names []string) (due []Suspect, early, absent []string, err error) {
	for _, name := range names {
		if ctx.Err() != nil {
			return due, early, absent, ctx.Err()
		}
		if !k.IsDocument(name) {
			continue
		}
		s, is, err := ed.suspect(ctx, k, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			absent = append(absent, name)
		case errors.Is(err, errs.ErrClosed), ctx.Err() != nil, errors.Is(err, errs.ErrReadOnly):
			return due, early, absent, err
		case err != nil:
			ed.reported(k, name, err)
		case is:
			due = append(due, s)
		case s.early:
			early = append(early, name)
		}
	}
	return due, early, absent, nil
}

// Suspect is a file that may have to be adopted: its size or time differs from the index, or the index does
// not list it.
type Suspect struct {
	Name, ID string
	unknown  bool
	// the file was edited before the version that it is based on was flushed, so it must be checked again: see suspects
	early   bool
	Adopted func(*Adoption) // if not nil, called after the file was adopted
}

// suspect compares a file with the index. differs reports whether the size or the time of the file differs from
// the index, or the document is not in the index. differs is false if the file cannot be a document. It is also
// false as long as a flush of the document is due, because that flush decides about the file. If the file is
// missing, the error is fs.ErrNotExist.
func (ed *Adopter) suspect(ctx context.Context, k *engine.Kind, name string) (s Suspect, differs bool, err error) {
	s.Name = name
	info, err := k.Stat(name)
	if err != nil {
		return s, false, err
	}
	if !info.Mode.IsRegular() {
		return s, false, nil // not a document; a flush that needs the place sets it aside
	}
	var ok bool
	if s.ID, ok = k.ID(name); !ok { // the name does not contain the id
		p, _, err := rebuild.ParseFile(ed.engine, k, name)
		if err != nil {
			return s, false, err
		}
		s.ID = p.ID
	}
	v, flushed, err := ed.newestOf(ctx, k, s.ID)
	switch {
	case errors.Is(err, errs.ErrNotFound):
		// The flush removes a file whose deletion is pending, or sets it aside if the store did not write it.
		s.unknown = true
		if ed.isLeft(k, name) {
			return s, false, nil
		}
		differs = !ed.deletedSince(k, s.ID)
		s.early = !differs && k.FileWins // the next round could come after the next save
		return s, differs, nil
	case err != nil:
		return s, false, err
	}
	if differs = !engine.Matches(&v.Line, info); !differs {
		ed.moves.saw(k, s.ID, info)
	}
	if differs && !flushed {
		s.early = !ed.flusher.Ours(ctx, k, s.ID, v.LSN, info, func() ([]byte, error) {
			data, _, err := k.Read(name, places.StoredMost)
			return data, err
		})
	}
	return s, differs && flushed, nil
}

// judgeTries is the maximum number of attempts to decide about several files together. An attempt is repeated for files
// that are written meanwhile.
const judgeTries = 3

// JudgeAll decides about files that differ from the index, and adopts many in one commit. An error is about all files;
// JudgeAll reports an error about a single file, and does not return it.
func (ed *Adopter) JudgeAll(ctx context.Context, k *engine.Kind, due []Suspect) error {
	var again []Suspect
	for try := 0; len(due) > 0; try++ {
		if try == judgeTries {
			return ed.judgeEach(ctx, k, due)
		}
		for len(due) > 0 {
			n, late, err := ed.judgeSome(ctx, k, due)
			if err != nil {
				return err
			}
			due, again = due[n:], append(again, late...)
		}
		due, again = again, nil
	}
	return nil
}

// judgeSome decides about the first n files in due, and adopts them in one commit. n is the number of files that fit
// in the commit. late has those of the n files that were written meanwhile, about which the caller decides again.
// judgeSome takes flush.lock once.
func (ed *Adopter) judgeSome(ctx context.Context, k *engine.Kind, due []Suspect) (n int, late []Suspect, err error) {
	held, unlock, err := ed.flusher.Lock(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer unlock()
	if err := ed.engine.CatchUp(ctx); err != nil {
		return 0, nil, err
	}
	var list []*Verdict
	for bytes := 0; n < len(due) && n < commit.PartsMost && bytes < commit.PartsBytes; n++ {
		if ctx.Err() != nil {
			return n, nil, ctx.Err()
		}
		v := ed.verdictOf(ctx, held, k, &due[n])
		bytes += len(v.Version.Doc)
		if v.Adopt != nil {
			bytes += len(v.Adopt.file)
		}
		list = append(list, v)
	}
	ed.carryOut(ctx, held, k, list)
	for i, v := range list {
		if a := v.Adopt; a != nil && a.stood == nil && a.Err == nil && due[i].Adopted != nil {
			due[i].Adopted(a)
		}
		switch {
		case v.Err == nil, errors.Is(v.Err, fs.ErrNotExist), errors.Is(v.Err, errs.ErrNotFound):
			// nothing to report, or gone meanwhile
		case errors.Is(v.Err, errs.ErrClosed), errors.Is(v.Err, errs.ErrReadOnly), ctx.Err() != nil:
			return n, nil, v.Err
		case errors.Is(v.Err, errs.ErrConflict), errors.Is(v.Err, engine.ErrMoved), errors.Is(v.Err, errs.ErrTruncated):
			late = append(late, due[i])
		default:
			ed.reported(k, v.name, v.Err)
		}
	}
	return n, late, nil
}

// judgeEach decides about each file individually: it reads the document, and the read adopts, restores or reports the
// file.
func (ed *Adopter) judgeEach(ctx context.Context, k *engine.Kind, due []Suspect) error {
	for _, s := range due {
		_, err := ed.engine.Find(ctx, k, s.ID, true)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, errs.ErrNotFound):
		case errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrReadOnly), ctx.Err() != nil:
			return err
		default:
			ed.reported(k, s.Name, err)
		}
	}
	return nil
}

// verdictOf returns the verdict about the file s. If the index lists the document of the file, it does what verdict
// does. Otherwise it decides whether the file is to be adopted as a new document.
func (ed *Adopter) verdictOf(ctx context.Context, held *wal.Held, k *engine.Kind, s *Suspect) *Verdict {
	if !s.unknown {
		return ed.verdict(ctx, held, k, s.ID)
	}
	v := &Verdict{ID: s.ID, name: s.Name}
	data, info, err := ed.read(ctx, k, s.Name)
	if err != nil {
		v.Err = fmt.Errorf("reading %s/%s: %w", k.Name(), s.Name, err)
		return v
	}
	is := ed.Newcomer(ctx, k, data, s.Name, "", info.Mtime)
	if is.Adopt == nil {
		return is
	}
	if _, err := ed.engine.Find(ctx, k, is.ID, false); !errors.Is(err, errs.ErrNotFound) || ed.deletedSince(k, is.ID) {
		return v // the document exists by now
	}
	return is
}

// reported reports to the host that a file could not be adopted because of err. It does so once for each state of the
// file.
func (ed *Adopter) reported(k *engine.Kind, name string, err error) {
	path := k.Name() + "/" + name
	info, serr := k.Stat(name)
	if serr != nil {
		return
	}
	if !ed.engine.Health().TellOnce(path, info, err) {
		return
	}
	ed.engine.Env().Logger.Warn("an edit could not be adopted", "path", path, "err", err)
	ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: path, Err: err,
		Note: "the file stays as it is until it is corrected or replaced"})
}
