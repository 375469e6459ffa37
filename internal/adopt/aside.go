package adopt

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// AdoptAside adopts files that a round of the flusher has moved to quarantine although they are based on the newest
// version. Such files exist if a user saves twice: the first edit was adopted, and the second was saved before the
// flusher wrote the adopted version to the file. The files also stay in quarantine. If no process watches the files,
// AdoptAside does nothing, because then no process has adopted the first edit.
func (ed *Adopter) AdoptAside(ctx context.Context, held *wal.Held, aside []docfile.Edit) {
	if len(aside) == 0 || ed.engine.Log().Processes().Leader() == 0 {
		return
	}
	lists := map[*engine.Kind][]*Verdict{}
	bytes := 0
	cmt := func() {
		for _, k := range ed.engine.Kinds().All {
			list := lists[k]
			delete(lists, k)
			ed.AdoptAll(ctx, held, k, list)
			for _, v := range list {
				if v.Err != nil {
					ed.engine.Env().Logger.Warn("adopting an edit that was set aside", "path", v.name, "err", v.Err)
				}
			}
		}
		bytes = 0
		_ = ed.engine.CatchUp(ctx) // a process that cannot see what was committed meets a conflict
	}
	for _, e := range aside {
		k, v := ed.asideOf(ctx, &e)
		if v == nil {
			continue
		}
		if slices.ContainsFunc(lists[k], func(other *Verdict) bool { return other.ID == v.ID }) {
			cmt() // commit first: this file is judged against the version made of the other
			if k, v = ed.asideOf(ctx, &e); v == nil {
				continue
			}
		}
		lists[k] = append(lists[k], v)
		if bytes += len(v.Adopt.file); bytes >= commit.PartsBytes {
			cmt()
		}
	}
	cmt()
}

// parking records when CheckParked next checks the replaced files that a program still has open. parked is the number
// of such files, pause is the time between two checks, and due is the time of the next check.
type parking struct {
	parked int
	pause  time.Duration
	due    time.Time
}

// asideOf returns the kind of, and the verdict about, a file that was moved to quarantine, if the file is to be
// adopted; otherwise nil, nil.
func (ed *Adopter) asideOf(ctx context.Context, e *docfile.Edit) (*engine.Kind, *Verdict) {
	k := (&Files{ed}).folder(e.Folder)
	if k == nil || e.Where == "" {
		return nil, nil
	}
	data, err := vfs.ReadText(ed.engine.Env().FS, filepath.Join(ed.engine.Env().Dir, filepath.FromSlash(e.Where)),
		places.StoredMost)
	if err != nil {
		return nil, nil
	}
	p, err := k.ParseEdit(data, k.IDAt(e.Name))
	if err != nil || k.FileName(p.ID) != e.Name || p.Updated.IsZero() != k.Opaque {
		return nil, nil
	}
	newest, err := ed.engine.Settled(ctx, k, p.ID)
	if err != nil || sha256.Sum256(data) == sha256.Sum256(newest.Doc) {
		return nil, nil
	}
	if k.Opaque {
		// Bytes that were saved later than the version replace it. Older bytes may be left from a crash.
		if !e.Info.Mtime.After(engine.TimeOf(&newest.Line)) {
			return nil, nil
		}
	} else if made, err := k.Parse(newest.Doc, p.ID); err != nil || !made.Updated.Equal(*p.Updated) {
		return nil, nil
	}
	v := &Verdict{ID: p.ID, name: e.Where}
	if v.Adopt, err = ed.adoption(ctx, k, &p, data, time.Time{}, newest); err != nil {
		ed.engine.Env().Logger.Warn("adopting an edit that was set aside", "path", e.Where, "err", err)
		return nil, nil
	}
	return k, v
}

// How often CheckParked checks replaced files that a program still has open, while no flush checks them: a save into
// such a file must be reported even if nothing else happens.
const (
	parkedFirst = flush.FlushEvery
	parkedMost  = time.Minute
)

// CheckParked runs a round that examines the replaced files which a program still had open, and adopts or reports what
// was saved into them since. It does nothing if the next check is not due, or if another process holds flush.lock.
func (ed *Adopter) CheckParked(ctx context.Context) {
	f, now := &ed.parking, ed.engine.Env().Clock()
	n := ed.flusher.Files().Parked()
	if n != f.parked {
		f.parked, f.pause, f.due = n, parkedFirst, now.Add(parkedFirst)
	}
	if n == 0 || now.Before(f.due) {
		return
	}
	held, err := ed.engine.Log().TryLockFlush()
	if err != nil || held == nil {
		return // the holder checks them
	}
	defer held.Unlock()
	f.pause = min(2*f.pause, parkedMost)
	f.due = now.Add(f.pause)
	if err := ed.engine.CatchUp(ctx); err != nil {
		return
	}
	result, err := ed.flusher.Files().Round(ctx, nil)
	ed.flusher.Edited(ctx, result.Edits)
	ed.AdoptAside(ctx, held, result.Edits)
	if err != nil && ctx.Err() == nil {
		ed.engine.Env().Logger.Warn("checking displaced files", "err", err)
	}
}
