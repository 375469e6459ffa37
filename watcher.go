package varve

import (
	"context"
	"path/filepath"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/wal"
)

// Watcher has what users do to the files taken over while a store is open: see
// Options.Watcher. Package fswatch has one.
type Watcher interface {
	// Watch is called in a goroutine of its own when the store is open, and returns when
	// ctx ends: Close waits for it.
	Watch(ctx context.Context, f *Files)
}

// Files are the files of a store for its Watcher, who finds out which to look at,
// and when. What is taken over, and what is not, is decided here, as for a file
// that is edited while nobody watches; see the package comment.
type Files struct{ st *Store }

// Folders are the names of the folders with documents, relative to Dir.
func (f *Files) Folders() []string {
	var list []string
	for _, k := range f.st.engine.Kinds.All {
		list = append(list, k.Name())
	}
	return list
}

// Path is where a folder is.
func (f *Files) Path(folder string) string { return filepath.Join(f.st.engine.Env.Dir, folder) }

// Lead returns once this process is the one that watches the store: when nobody does,
// or when who did has closed it or died. release ends that.
func (f *Files) Lead(ctx context.Context) (release func(), err error) {
	lead, err := f.st.engine.Log.Lead(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		if err := lead.Release(); err != nil {
			f.st.engine.Env.Logger.Warn("letting go of the watch", "err", err)
		}
	}, nil
}

// Say tells the host how the files are watched, and why if that is not as it should be.
func (f *Files) Say(note string, err error) {
	if err != nil {
		f.st.engine.Env.Logger.Warn("watching the files", "how", note, "err", err)
	}
	f.st.engine.Env.Event(env.Event{Kind: env.EventWatching, Note: note, Err: err})
}

// folder is the kind whose documents lie in a folder.
func (f *Files) folder(name string) *engine.Kind {
	for _, k := range f.st.engine.Kinds.All {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// deletesByHand says that a file which somebody deletes is for the process that watches
// to judge: who meets its absence does not put it back.
func (st *Store) deletesByHand() bool {
	adopt := st.engine.Settings.Now().AdoptsDeletions()
	return adopt && st.engine.Log.Leader() != 0
}

// newestOf is the newest version of a document, and whether it is in its file: else a
// flush is due, and that judges what stands there.
func (st *Store) newestOf(ctx context.Context, k *engine.Kind, id string) (v engine.Version, flushed bool, err error) {
	to := st.engine.Log.Flushed() // before: what it does not cover now, is not judged
	v, err = st.engine.Find(ctx, k, id, false)
	return v, err == nil && v.LSN < to, err
}

// deletedSince says that the deletion of a document waits to be flushed.
func (st *Store) deletedSince(k *engine.Kind, id string) bool {
	to := st.engine.Log.Flushed()
	at := st.engine.State.Deletion(k.Letter, id)
	return at != 0 && at >= wal.LSN(to)
}
