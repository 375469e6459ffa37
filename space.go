package varve

import (
	"fmt"
	"time"

	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
)

// A full disk refuses puts, so the store warns while it can still go on. The
// space is low when less is free than the next steps may take together:
//
//	one segment of the log                     64 MiB, unless the store was made with others
//	what the log holds and no file does yet    it becomes files
//	another index                              base and delta are written beside the old ones
//	a twentieth of the disk, at most 128 MiB   for what everybody else writes meanwhile
//
// It is looked at when the store is opened, after every flush, and every few
// seconds; the event comes once, and again only after there was a quarter more.
const (
	spaceShare = 20
	spaceMost  = 128 << 20
	spaceEvery = time.Second
)

// Space is how much of the disk is left for a store, in bytes.
type Space struct {
	Free  int64 // that may still be written
	Total int64 // of the volume, 0 when unknown
	Low   int64 // below this the store warns
}

// Short says that the space is low.
func (s Space) Short() bool { return s.Total > 0 && s.Free < s.Low }

func (s Space) say(dir string) string {
	return fmt.Sprintf("%s are left for %s, it should be %s: make room, or delete memories", errs.Bytes(s.Free), dir, errs.Bytes(s.Low))
}

func (st *Store) lookAtSpace() (Space, error) {
	v, err := st.engine.env.FS.Volume(st.engine.env.Dir)
	if err != nil {
		return Space{}, err
	}
	durable, flushed := st.engine.log.Durable(), st.engine.log.Flushed()
	s := Space{Free: v.Free, Total: v.Total, Low: int64(st.engine.log.SegmentSize()) + int64(durable-min(durable, flushed)) + min(v.Total/spaceShare, spaceMost)}
	if set := st.engine.state.Set(); set != nil {
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

// watchSpace tells when the space becomes low, and when it is back.
func (st *Store) watchSpace() {
	now := st.engine.env.Clock()
	st.engine.health.mu.Lock()
	was := st.engine.health.space
	if d := now.Sub(was.at); !was.at.IsZero() && d >= 0 && d < spaceEvery {
		st.engine.health.mu.Unlock()
		return
	}
	st.engine.health.space.at = now
	st.engine.health.mu.Unlock()
	s, err := st.lookAtSpace()
	if err != nil {
		return // whoever writes will hear of it
	}
	short := s.Short() || was.short && s.Free < s.Low+s.Low/4
	st.engine.health.mu.Lock()
	st.engine.health.space.short = short
	st.engine.health.mu.Unlock()
	switch {
	case short && !was.short:
		st.engine.env.Logger.Warn("low space", "free", s.Free, "low", s.Low, "dir", st.engine.env.Dir)
		st.engine.env.Event(env.Event{Kind: env.EventLowSpace, Path: ".", Bytes: s.Free, Note: s.say(st.engine.env.Dir)})
	case !short && was.short:
		st.engine.env.Event(env.Event{Kind: env.EventSpaceBack, Path: ".", Bytes: s.Free})
	}
}
