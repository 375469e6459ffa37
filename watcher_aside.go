package varve

import (
	"context"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
)

// adoptAside takes over what a round has set aside although it was made of the newest version:
// somebody saved twice, and the second time between the adoption of the first and the
// moment in which that was put into its file. What was set aside stays there as well.
// flush.lock is held. Where nobody watches, nothing was adopted a moment ago.
func (st *Store) adoptAside(ctx context.Context, aside []docfile.Edit) {
	if len(aside) == 0 || st.log.Leader() == 0 {
		return
	}
	for _, e := range aside {
		k := (&Files{st}).folder(e.Folder)
		if k == nil || e.Where == "" {
			continue
		}
		data, err := vfs.ReadFile(st.fs, filepath.Join(st.dir, filepath.FromSlash(e.Where)), fileLimit)
		if err != nil {
			continue
		}
		p, err := k.parse(data, "")
		if err != nil || docfile.FileName(p.id) != e.Name || p.updated.IsZero() {
			continue
		}
		newest, err := st.settled(ctx, k, p.id)
		if err != nil || hash(data) == hash(newest.doc) {
			continue
		}
		made, err := k.parse(newest.doc, p.id)
		if err != nil || !made.updated.Equal(*p.updated) {
			continue
		}
		if _, err := st.adopt(ctx, k, &p, data, newest); err != nil {
			st.o.Logger.Warn("taking over an edit that was set aside", "path", e.Where, "err", err)
		}
	}
}

// How often a displaced file that somebody has open is looked at again, while no
// flush does: who saves into it is to hear of it, also where nothing else happens.
const (
	parkedFirst = flushEvery
	parkedMost  = time.Minute
)

func (st *Store) lookAtParked(ctx context.Context) {
	f, now := &st.flusher, st.o.Clock()
	n := f.files.Parked()
	if n != f.parked {
		f.parked, f.parkedPause, f.parkedDue = n, parkedFirst, now.Add(parkedFirst)
	}
	if n == 0 || now.Before(f.parkedDue) {
		return
	}
	if ok, err := st.log.TryLockFlush(); err != nil || !ok {
		return // who has it looks
	}
	defer st.log.UnlockFlush()
	f.parkedPause = min(2*f.parkedPause, parkedMost)
	f.parkedDue = now.Add(f.parkedPause)
	if err := st.sight(ctx); err != nil {
		return
	}
	result, err := f.files.Round(ctx, nil)
	st.edited(ctx, result.Edits)
	st.adoptAside(ctx, result.Edits)
	if err != nil && ctx.Err() == nil {
		st.o.Logger.Warn("looking at displaced files", "err", err)
	}
}
