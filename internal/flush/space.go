package flush

import (
	"time"

	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/space"
)

// The space is looked at when the store is opened, after every flush, and every few
// seconds; the event comes once, and again only after there was a quarter more.
const spaceEvery = time.Second

// LookAtSpace asks the file system.
func (fl *Flusher) LookAtSpace() (space.Space, error) {
	v, err := fl.Engine.Env.FS.Volume(fl.Engine.Env.Dir)
	if err != nil {
		return space.Space{}, err
	}
	durable, flushed := fl.Engine.Log.Durable(), fl.Engine.Log.Flushed()
	s := space.Space{Free: v.Free, Total: v.Total, Low: space.Low(v.Total, int64(fl.Engine.Log.SegmentSize()), int64(durable-min(durable, flushed))), Inodes: v.FreeFiles, AllInodes: v.Files}
	if set := fl.Engine.State.Set(); set != nil {
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

// WatchSpace tells when the space becomes low, and when it is back.
func (fl *Flusher) WatchSpace() {
	now := fl.Engine.Env.Clock()
	fl.Engine.Health.Mu.Lock()
	was := fl.Engine.Health.Space
	if d := now.Sub(was.At); !was.At.IsZero() && d >= 0 && d < spaceEvery {
		fl.Engine.Health.Mu.Unlock()
		return
	}
	fl.Engine.Health.Space.At = now
	fl.Engine.Health.Mu.Unlock()
	s, err := fl.LookAtSpace()
	if err != nil {
		return // the next write reports it
	}
	short := s.Short() || was.Short && s.Free < s.Low+s.Low/4 // inodes come back by the file
	fl.Engine.Health.Mu.Lock()
	fl.Engine.Health.Space.Short = short
	fl.Engine.Health.Mu.Unlock()
	switch {
	case short && !was.Short:
		fl.Engine.Env.Logger.Warn("low space", "free", s.Free, "low", s.Low, "dir", fl.Engine.Env.Dir)
		fl.Engine.Env.Event(env.Event{Kind: env.EventLowSpace, Path: ".", Bytes: s.Free, Note: s.Say(fl.Engine.Env.Dir)})
	case !short && was.Short:
		fl.Engine.Env.Event(env.Event{Kind: env.EventSpaceBack, Path: ".", Bytes: s.Free})
	}
}
