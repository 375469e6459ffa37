package adopt

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/wal"
)

// Files gives a Watcher access to the document files of a store. The Watcher decides which files to check, and when.
// Files decides which changes are adopted, by the same rules as for a file that is edited while no process watches; see
// the package comment.
type Files struct{ ed *Adopter }

// NewFiles returns the Files of a store.
func NewFiles(ed *Adopter) *Files { return &Files{ed} }

// Folders returns the names of the folders with documents, relative to the store.
func (f *Files) Folders() []string {
	var list []string
	for _, k := range f.ed.present() {
		list = append(list, k.Name())
	}
	return list
}

// present returns the kinds of which the store has, or once had, documents, and those whose folder was created
// by hand.
func (ed *Adopter) present() []*engine.Kind {
	return slices.DeleteFunc(slices.Clone(ed.engine.Kinds().All), func(k *engine.Kind) bool {
		return !ed.engine.HasHad(k) && k.Check() != nil
	})
}

// Path returns the path of a folder in the file system.
func (f *Files) Path(folder string) string { return filepath.Join(f.ed.engine.Env().Dir, folder) }

// Lead blocks until this process becomes the one that watches the store. If another process watches the store, Lead
// waits until that process has closed the store or has ended. release ends the watch.
func (f *Files) Lead(ctx context.Context) (release func(), err error) {
	lead, err := f.ed.engine.Log().Processes().Lead(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		if err := lead.Release(); err != nil {
			f.ed.engine.Env().Logger.Warn("ending the watch of the files", "err", err)
		}
	}, nil
}

// Polls tells all processes why this process, which watches the files, scans the files at intervals: cause is the
// reason why the system does not notify this process of changes.
func (f *Files) Polls(cause wal.PollCause) { f.ed.engine.Log().Processes().SetPolling(cause) }

// Report reports to the host how the files are watched. note names the method; err is the reason if the watching is
// limited, and otherwise nil.
func (f *Files) Report(note string, err error) {
	if err != nil {
		f.ed.engine.Env().Logger.Warn("watching the files", "how", note, "err", err)
	}
	f.ed.engine.Env().Event(env.Event{Kind: env.EventWatching, Note: note, Err: err})
}

// folder returns the kind whose documents are in the folder of this name.
func (f *Files) folder(name string) *engine.Kind {
	for _, k := range f.ed.engine.Kinds().All {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// Ignores reports whether a file is not adopted as a new document, because notes_ignore names it or because it is in
// the folder of another store. The file of an existing document is never ignored.
func (ed *Adopter) Ignores(k *engine.Kind, name string) bool {
	if !k.FileWins {
		return false
	}
	id, ok := k.ID(name)
	return ok && (ed.engine.Settings().Now().Ignores(id) || ed.inStore(k, name, nil))
}

// inStore reports whether a file is in the folder of another store, such as a store in an adopted folder. Only that
// store may write its files: if they were documents of this store, files that the other store deletes could come back.
// known has the result for each folder that was examined already, and inStore adds its results to known. If known is
// nil, inStore examines each folder.
func (ed *Adopter) inStore(k *engine.Kind, name string, known map[string]bool) bool {
	for at, c := range name {
		if c != '/' {
			continue
		}
		is, ok := known[name[:at]]
		if !ok {
			is = ed.isStore(k.Path(name[:at]))
			if known != nil {
				known[name[:at]] = is
			}
		}
		if is {
			return true
		}
	}
	return false
}

// isStore reports whether a folder is that of a store.
func (ed *Adopter) isStore(folder string) bool {
	e := ed.engine.Env()
	if info, err := e.FS.Stat(filepath.Join(folder, settings.Name)); err == nil && info.Mode.IsRegular() {
		if c, _, _ := settings.Read(e.FS, folder); c != nil {
			return true
		}
	}
	info, err := e.FS.Stat(filepath.Join(folder, "wal", "open.lock"))
	return err == nil && info.Mode.IsRegular()
}

// deletesByHand reports whether a read that finds a file missing must not decide about the file, because the file may
// have been deleted by hand. If config.json has adopt_deletions, the watching process decides. If no process watches,
// a read decides only when the folder has not changed for quietFor. While config.json is not valid, no process
// decides, and the result is true.
func (ed *Adopter) deletesByHand(k *engine.Kind) bool {
	if ed.engine.Settings().Unknown() {
		return true
	}
	return ed.engine.Settings().Now().AdoptsDeletions() &&
		(ed.engine.Log().Processes().Leader() != 0 || !ed.engine.Log().Notes().Distrusted() && !ed.quiet(k))
}

// newestOf returns the newest version of a document. flushed reports whether that version is written to the document's
// file. If flushed is false, a flush of the version is due, and that flush decides about the existing file.
func (ed *Adopter) newestOf(ctx context.Context, k *engine.Kind,
	id string) (v engine.Version, flushed bool, err error) {
	to := ed.engine.Log().Flushed() // read first: a version that is not flushed now is not judged
	v, err = ed.engine.Find(ctx, k, id, false)
	return v, err == nil && v.LSN < to, err
}

// deletedSince reports whether a document was deleted and the deletion has not been flushed yet.
func (ed *Adopter) deletedSince(k *engine.Kind, id string) bool {
	to := ed.engine.Log().Flushed()
	at := ed.engine.State().Deletion(k.Letter, id)
	return at != 0 && at >= wal.LSN(to)
}
