package varve

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"

	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// switchTries is how often the switch waits for a moment in which nothing was
// committed since everything was looked at. After that it does without: what has
// changed by then follows, and has no vector until it does.
const switchTries = 16

// change makes the computed vectors the store's, by one entry of the log: it counts
// only if what they were made of is still all that there is.
func (r *reembed) change(ctx context.Context) error {
	st := r.st
	have, err := r.have()
	if err != nil {
		return err
	}
	var looked wal.LSN // up to where changes were seen to
	for try := 0; ; try++ {
		if err := st.sight(ctx); err != nil {
			return err
		}
		at := st.log.Applied()
		if err := r.catchUp(ctx, have, looked); err != nil {
			return err
		}
		looked = at
		model := st.vectorsBy()
		c := changeOfModel(&model)
		c.Next = ""
		if r.file.dim != 0 {
			c = state.Change{Name: st.o.EmbedModel, Dimension: r.file.dim, Switch: true}
		}
		undecided := at
		if try == switchTries {
			undecided = 0
		}
		err := r.standing(ctx, func() error { return st.setModel(ctx, model, c, undecided) })
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// errPurged: the file with what was computed has gone, with a memory that was in it.
var errPurged = errors.New("what was computed was removed by a purge")

// standing calls f while the file that was written is the one that others find: a
// purge removes it, under the same lock.
func (r *reembed) standing(ctx context.Context, f func() error) error {
	st := r.st
	if err := st.log.LockFlush(ctx); err != nil {
		return err
	}
	defer st.log.UnlockFlush()
	var there vfs.Info
	mine, err := r.file.f.Stat()
	if err == nil {
		there, err = st.fs.Stat(st.computedPath(computedName))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && there.Ino != mine.Ino:
		return errPurged
	case err != nil:
		return st.ioError("looking at", st.computedPath(computedName), err)
	}
	return f()
}

// have finds what is computed: the content's hash by id.
func (r *reembed) have() (map[string][32]byte, error) {
	have := make(map[string][32]byte, r.file.count)
	_, err := r.file.records(math.MaxInt64, func(p []byte) error {
		var v computedVector
		if p[0] == 'v' {
			if err := v.parse(p); err != nil {
				return err
			}
			have[v.id] = v.sum
		}
		return nil
	})
	if err != nil {
		return nil, r.st.ioError("reading", r.st.computedPath(computedName), err)
	}
	return have, nil
}

// catchUp computes the vectors of what has changed since a position, 0: ever.
func (r *reembed) catchUp(ctx context.Context, have map[string][32]byte, since wal.LSN) error {
	ids, err := r.changedSince(ctx, since)
	if err != nil {
		return err
	}
	return r.batches(ids, func(ids []string) error {
		list, err := r.computeSome(ctx, ids, have)
		for _, v := range list {
			if _, ok := have[v.id]; ok {
				r.report.Changed++
			} else {
				r.report.Computed++
			}
			have[v.id] = v.sum
		}
		r.tell()
		return err
	})
}

// changedSince are the ids of memories that have changed since a position, all of
// them where nobody can say.
func (r *reembed) changedSince(ctx context.Context, since wal.LSN) (ids []string, err error) {
	st := r.st
	changes := st.state.Changes(since, 1<<62)
	if since != 0 && st.state.From() <= since {
		reader := st.log.Reader()
		for _, c := range changes {
			e, err := reader.At(ctx, c.Pos)
			if errors.Is(err, ErrTruncated) {
				return r.changedSince(ctx, 0)
			}
			if err != nil {
				return nil, err
			}
			if e.Key[0] == record.Memory && !e.Delete {
				ids = append(ids, string([]byte(e.Key[1:])))
			}
		}
		return ids, nil
	}
	for id, err := range st.ids(ctx, st.memories, filters{}) {
		if err != nil {
			if id == "" || ctx.Err() != nil {
				return nil, err
			}
			continue
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// settleConfig writes what was decided where people read it, and where a store is
// made from whose log and index are gone.
func (r *reembed) settleConfig() error {
	st := r.st
	model := st.vectorsBy()
	c := st.Config()
	v := c.vectors()
	if v.Dimension == model.Dimension && v.Model == model.Name {
		return nil
	}
	v.Dimension, v.Model = model.Dimension, model.Name
	c.Vectors = &v
	return st.SetConfig(c)
}

func jsonLine(v any) ([]byte, error) { return json.Marshal(v) }
