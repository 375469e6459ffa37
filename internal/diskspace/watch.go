package diskspace

import (
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
)

// every is the minimum interval between two checks of the space. The space is checked when the store is opened, after
// every flush, and every few seconds. EventLowSpace is sent once; it is sent again only after the free space has
// exceeded the limit by a quarter in between.
const every = time.Second

// Look measures the free space on the file system of a store.
func Look(eng *engine.Engine) (Space, error) {
	v, err := eng.Env().FS.Volume(eng.Env().Dir)
	if err != nil {
		return Space{}, err
	}
	durable, flushed := eng.Log().Durable(), eng.Log().Flushed()
	s := Space{Free: v.Free, Total: v.Total,
		Low: low(v.Total, int64(eng.Log().SegmentSize()), int64(durable-min(durable, flushed))), Inodes: v.FreeFiles,
		AllInodes: v.Files}
	// Counting costs time, so the changes are counted only where the inodes may be few.
	if state := eng.State(); s.AllInodes > 0 && s.Inodes < inodeMost+int64(state.Overlay().Len()) {
		s.Unfiled = state.Written(flushed, durable)
	}
	if set := eng.State().Set(); set != nil {
		defer set.Release()
		if set.Base() != nil {
			s.Low += set.Base().Size()
		}
		if set.Delta() != nil {
			s.Low += set.Delta().Size()
		}
	}
	return s, nil
}

// Watch logs and sends an event when the space becomes low, and sends another event when there is enough space again.
// It does nothing if the previous check was less than one second ago (see every).
func Watch(eng *engine.Engine) {
	now := eng.Env().Clock()
	eng.Health().Mu.Lock()
	was := eng.Health().Space
	if d := now.Sub(was.At); !was.At.IsZero() && d >= 0 && d < every {
		eng.Health().Mu.Unlock()
		return
	}
	eng.Health().Space.At = now
	eng.Health().Mu.Unlock()
	s, err := Look(eng)
	if err != nil {
		return // the next write reports it
	}
	short := s.Short() || was.Short && s.Free < s.Low+s.Low/4 // a file frees its inode with its bytes
	eng.Health().Mu.Lock()
	eng.Health().Space.Short = short
	eng.Health().Mu.Unlock()
	switch {
	case short && !was.Short:
		eng.Env().Logger.Warn("low space", "free", s.Free, "low", s.Low, "dir", eng.Env().Dir)
		eng.Env().Event(env.Event{Kind: env.EventLowSpace, Path: ".", Bytes: s.Free, Note: s.Say(eng.Env().Dir)})
	case !short && was.Short:
		eng.Env().Event(env.Event{Kind: env.EventSpaceBack, Path: ".", Bytes: s.Free})
	}
}
