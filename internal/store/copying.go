package store

import (
	"context"
	"iter"

	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/writer"
)

// Copied flushes the store and returns the data that a backup or a migration copies. A store that is open read-only is
// not flushed. If unflushed is true and files cannot be written now, for example because a folder is immutable, this
// is not an error: documents that are not in files are copied from the log. A full disk is always an error.
func (st *Store) Copied(ctx context.Context, unflushed bool) (backup.Source, error) {
	var again func(context.Context) error
	if d := st.Engine.Log().Damage(); !st.Engine.Env().ReadOnly || d != nil {
		if err := st.Engine.Writable(); err != nil {
			return backup.Source{}, err
		}
		again = func(ctx context.Context) error { return st.Flusher.Flush(ctx, flush.MergeFlush) }
		switch err := again(ctx); {
		case err == nil:
		case unflushed && vfs.CanWait(err) && !vfs.IsDiskFull(err) && ctx.Err() == nil:
			// A folder to which no files can be written, such as an immutable one, does not prevent the
			// copy.
			st.Engine.Env().Logger.Warn("copying a store whose files cannot be written now: newer documents are copied "+
				"from the log", "err", err)
			again = nil
		default:
			return backup.Source{}, err
		}
	}
	s, err := st.Copying(ctx)
	s.Flush = again
	return s, err
}

// Copying returns the data that a backup or a migration copies. It does not flush the store.
func (st *Store) Copying(ctx context.Context) (backup.Source, error) {
	live, err := st.Engine.Count(ctx, engine.Filters{})
	if err != nil {
		return backup.Source{}, err
	}
	ids := func(k *engine.Kind) func(context.Context) iter.Seq2[string, error] {
		return func(ctx context.Context) iter.Seq2[string, error] {
			return st.Engine.IDs(ctx, k, engine.Filters{Expired: true})
		}
	}
	read := func(k *engine.Kind) func(context.Context, string) (backup.Document, error) {
		return func(ctx context.Context, id string) (backup.Document, error) {
			v, err := st.Engine.Find(ctx, k, id, true)
			return backup.Document{Bytes: v.Doc, Version: v.LSN, Vector: v.Line.VectorNumber(), By: v.Line.By,
				Time: engine.TimeOf(&v.Line)}, err
		}
	}
	var documents []backup.Documents
	for _, k := range st.Engine.Kinds().All {
		documents = append(documents, backup.Documents{Kind: k.Kind, IDs: ids(k), Read: read(k)})
	}
	return backup.Source{
		FS: st.Engine.Env().FS, Dir: st.Engine.Env().Dir, Log: st.Engine.Log(),
		FileMode: st.Engine.Env().FileMode, FolderMode: st.Engine.Env().FolderMode,
		Clock: st.Engine.Env().Clock,
		Self:  st.Engine.Env().Self, Random: st.Engine.Env().Random,
		Count: live, CatchUp: st.Engine.CatchUp, ModelAsOf: st.Engine.State().ModelAsOf,
		Model:  st.Engine.State().Model,
		Writer: st.Engine.Writer,
		Writers: func() ([]writer.Writer, error) {
			t, err := st.Engine.Writers(ctx)
			return t.All(), err
		},
		Purges: func() ([]purgefile.Row, error) {
			t, err := st.Engine.Purged()
			if err != nil {
				return nil, err
			}
			return t.Sorted(), nil
		},
		Documents: documents,
		ScopeKeys: st.Scopes.KeysToCopy, ReadScope: st.Scopes.ReadCopy,
	}, nil
}
