package adopt

import (
	"context"
	"path/filepath"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/wal"
)

// Files are the files of a store for its Watcher, which finds out which to look at, and when. What
// is taken over, and what is not, is decided here, as for a file that is edited while nobody
// watches; see the package comment.
type Files struct{ ed *Adopter }

// NewFiles gives those of a store.
func NewFiles(ed *Adopter) *Files { return &Files{ed} }

// Folders are the names of the folders with documents, relative to Dir.
func (f *Files) Folders() []string {
	var list []string
	for _, k := range f.ed.engine.Present() {
		list = append(list, k.Name())
	}
	return list
}

// Path is where a folder is.
func (f *Files) Path(folder string) string { return filepath.Join(f.ed.engine.Env().Dir, folder) }

// Lead returns once this process is the one that watches the store: when no process does, or when
// the one that did has closed it or died. release ends that.
func (f *Files) Lead(ctx context.Context) (release func(), err error) {
	lead, err := f.ed.engine.Log().Processes().Lead(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		if err := lead.Release(); err != nil {
			f.ed.engine.Env().Logger.Warn("ending the watch", "err", err)
		}
	}, nil
}

// Polls tells all processes why the files are looked at in intervals, instead of being watched.
func (f *Files) Polls(why wal.PollCause) { f.ed.engine.Log().Processes().SetPolling(why) }

// Report tells the host how the files are watched, and why if that is not as it should be.
func (f *Files) Report(note string, err error) {
	if err != nil {
		f.ed.engine.Env().Logger.Warn("watching the files", "how", note, "err", err)
	}
	f.ed.engine.Env().Event(env.Event{Kind: env.EventWatching, Note: note, Err: err})
}

// folder is the kind whose documents lie in a folder.
func (f *Files) folder(name string) *engine.Kind {
	for _, k := range f.ed.engine.Kinds().All {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// Ignores reports whether a file in the folder of a kind is not adopted as a new document, by notes_ignore. The file of
// a document that there is, is never ignored.
func (ed *Adopter) Ignores(k *engine.Kind, name string) bool {
	if !k.FileWins {
		return false
	}
	id, ok := k.ID(name)
	return ok && ed.engine.Settings().Now().Ignores(id)
}

// deletesByHand reports whether a file which is missing may have been deleted by hand, which is not to be
// judged now: the process that watches does that, or, where none does, a read when the folder has
// not changed for a while; and neither while config.json is not valid.
func (ed *Adopter) deletesByHand(k *engine.Kind) bool {
	if ed.engine.Settings().Unknown() {
		return true
	}
	return ed.engine.Settings().Now().AdoptsDeletions() &&
		(ed.engine.Log().Processes().Leader() != 0 || !ed.engine.Log().Notes().Distrusted() && !ed.quiet(k))
}

// newestOf is the newest version of a document, and whether it is in its file: else a
// flush is due, and that judges what stands there.
func (ed *Adopter) newestOf(ctx context.Context, k *engine.Kind,
	id string) (v engine.Version, flushed bool, err error) {
	to := ed.engine.Log().Flushed() // before: what it does not cover now, is not judged
	v, err = ed.engine.Find(ctx, k, id, false)
	return v, err == nil && v.LSN < to, err
}

// deletedSince reports whether the deletion of a document waits to be flushed.
func (ed *Adopter) deletedSince(k *engine.Kind, id string) bool {
	to := ed.engine.Log().Flushed()
	at := ed.engine.State().Deletion(k.Letter, id)
	return at != 0 && at >= wal.LSN(to)
}
