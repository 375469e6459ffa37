package varve

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
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
	if st.log.Distrusted() {
		// After an unclean end places may hold anything, until they are written again.
		if err := st.flush(ctx, mergeWhenDue); err != nil {
			return nil, err
		}
	}
	before := st.health.adoptions()
	for _, name := range names {
		if ctx.Err() != nil {
			return absent, ctx.Err()
		}
		if !documentName(name) {
			continue
		}
		if err := st.log.CatchUp(ctx); err != nil {
			return absent, err
		}
		switch err := st.lookAt(ctx, k, name); {
		case errors.Is(err, fs.ErrNotExist):
			absent = append(absent, name)
		case errors.Is(err, ErrClosed), ctx.Err() != nil, errors.Is(err, ErrReadOnly):
			return absent, err
		case err != nil:
			st.reported(k, name, err)
		}
	}
	if st.health.adoptions() == before || ctx.Err() != nil {
		return absent, ctx.Err()
	}
	// The next save may come at once: see adoptAside for what that costs before this one
	// is in its file. Half a round is none, so who closes the store waits.
	return absent, st.flush(context.WithoutCancel(ctx), mergeWhenDue)
}

// documentName: the others are what editors and people put beside.
func documentName(name string) bool {
	return strings.HasSuffix(name, docfile.Extension) && !strings.HasPrefix(name, ".")
}

// lookAt judges one file. An absent one is fs.ErrNotExist.
func (st *Store) lookAt(ctx context.Context, k *kind, name string) error {
	info, err := k.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode.IsRegular() {
		return nil // not a document; a flush that needs the place puts it aside
	}
	id := strings.TrimSuffix(name, docfile.Extension)
	if docfile.FileName(id) != name { // the name does not say the id
		p, _, err := st.parseFile(k, name)
		if err != nil {
			return err
		}
		id = p.id
	}
	v, flushed, err := st.newestOf(ctx, k, id)
	switch {
	case errors.Is(err, ErrNotFound):
		if st.deletedSince(k, id) {
			return nil // the flush takes it away, or aside if it is not ours
		}
		return st.newFile(ctx, k, name)
	case err != nil:
		return err
	case !flushed || matches(&v.line, info):
		return nil
	}
	_, err = st.find(ctx, k, id, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // not of this moment any more
	}
	return err
}

// newFile takes over a file that somebody made: a new document.
func (st *Store) newFile(ctx context.Context, k *kind, name string) error {
	if err := st.log.LockFlush(ctx); err != nil {
		return err
	}
	defer st.log.UnlockFlush()
	if err := st.sight(ctx); err != nil {
		return err
	}
	p, doc, err := st.parseFile(k, name)
	if err != nil {
		return err
	}
	if _, err := st.find(ctx, k, p.id, false); !errors.Is(err, ErrNotFound) || st.deletedSince(k, p.id) {
		return nil // by now it is known
	}
	_, err = st.adopt(ctx, k, &p, doc.bytes, version{})
	if errors.Is(err, ErrConflict) {
		return nil // somebody wrote it meanwhile; the flush sets the file aside
	}
	return err
}

// reported tells what could not be taken over, once for each state of a file.
func (st *Store) reported(k *kind, name string, err error) {
	path := k.Name() + "/" + name
	info, serr := k.Stat(name)
	if serr != nil {
		return
	}
	if !st.health.tellOnce(path, info) {
		return
	}
	st.o.Logger.Warn("an edit could not be taken over", "path", path, "err", err)
	st.event(Event{Kind: EventDrift, Path: path, Err: err, Note: "it stays as it is until it is corrected or replaced"})
}
