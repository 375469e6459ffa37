package words

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/words"
)

// chunk is how many documents are read side by side.
const chunk = 256

// documents yields all documents of an index, those of a session one after the other.
func (w *Words) documents(ctx context.Context, set *index.Set) iter.Seq2[*words.Doc, error] {
	return func(yield func(*words.Doc, error) bool) {
		var ids []string
		give := func() bool {
			docs := make([]*words.Doc, len(ids))
			err := w.read(ctx, set, ids, docs)
			ids = ids[:0]
			if err != nil {
				yield(nil, err)
				return false
			}
			for _, d := range docs {
				if d != nil && !yield(d, nil) {
					return false
				}
			}
			return true
		}
		for e, err := range set.Range(index.BySession, index.Span{}) {
			var id string
			if err == nil {
				var ok bool
				if _, id, ok = index.SplitSessionKey(string(e.Key)); !ok {
					err = fmt.Errorf("%w: by_session has the key %s", errs.ErrCorrupt, human.Quote(string(e.Key)))
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if ids = append(ids, id); len(ids) == chunk && !give() {
				return
			}
		}
		for e, err := range set.Range(index.Memories, index.Span{}) {
			var line index.Entry
			if err == nil {
				line, err = index.ParseLine(e.Value)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if line.SessionID != "" {
				continue
			}
			if ids = append(ids, string(e.Key)); len(ids) == chunk && !give() {
				return
			}
		}
		give()
	}
}

// read reads the documents of some ids.
func (w *Words) read(ctx context.Context, set *index.Set, ids []string, docs []*words.Doc) error {
	workers := runtime.GOMAXPROCS(0)
	if w.eng.Env.System.Inline {
		workers = 1
	}
	failed := make([]error, workers)
	some := func(n int) {
		for i := n; i < len(ids); i += workers {
			if failed[n] = ctx.Err(); failed[n] == nil {
				docs[i], failed[n] = w.readOne(ctx, set, ids[i])
			}
			if failed[n] != nil {
				return
			}
		}
	}
	var wait sync.WaitGroup
	for n := 1; n < workers; n++ {
		wait.Go(func() { some(n) })
	}
	some(0)
	wait.Wait()
	return errors.Join(failed...)
}

// readOne reads a memory as of the index: of a version that neither its file nor the log has, only
// that it is there is known.
func (w *Words) readOne(ctx context.Context, set *index.Set, id string) (*words.Doc, error) {
	b, ok, err := set.Get(nil, index.Memories, id)
	if err != nil || !ok {
		return nil, err
	}
	line, err := index.ParseLine(b)
	if err != nil {
		return nil, fmt.Errorf("%w: index line of %s: %w", errs.ErrCorrupt, human.Quote(id), err)
	}
	kind := w.eng.Kinds.Memories
	v, err := w.eng.Read(ctx, kind, id, state.Place{Version: line.Version, Entry: line}, true)
	if err != nil {
		found, ok := w.eng.FromLog(ctx, kind, id, line.Version)
		switch {
		case ctx.Err() != nil, errors.Is(err, errs.ErrClosed):
			return nil, err
		case ok:
			v = found
		case vfs.IsStarved(err), vfs.IsUnopened(err): // else it would be without words for good
			return nil, err
		default:
			return unread(id, &line, line.Version), nil
		}
	}
	return w.decode(id, v.Doc, &line, line.Version), nil
}
