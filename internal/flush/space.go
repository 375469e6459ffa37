package flush

import (
	"fmt"
	"time"

	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/human"
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

// Inodes are another thing that a file system may run out of: every file takes one.
//
//	a twentieth of them, at most 256           a round of the flusher makes up to 64 files at once
const (
	inodeShare = 20
	inodeMost  = 256
)

// Space is how much of the disk is left for a store, in bytes and in files.
type Space struct {
	Free  int64 // that may still be written
	Total int64 // of the volume, 0 when unknown
	Low   int64 // below this the store warns

	Inodes    int64 // files that may still be made
	AllInodes int64 // that the volume may hold, 0 when unknown or not limited
}

// Short says that the space is low.
func (s Space) Short() bool { return s.Total > 0 && s.Free < s.Low || s.fewInodes() }

func (s Space) fewInodes() bool {
	return s.AllInodes > 0 && s.Inodes < min(s.AllInodes/inodeShare, inodeMost)
}

// Say is what Health and the event say of it.
func (s Space) Say(dir string) string {
	if s.fewInodes() && s.Free > 0 {
		return fmt.Sprintf("%s left on the file system of %s, every file takes one (df -i shows them): remove files, or delete memories", human.Count(int(s.Inodes), "inode is", "inodes are"), dir)
	}
	return fmt.Sprintf("%s are left for %s, it should be %s: make room, or delete memories", human.Bytes(s.Free), dir, human.Bytes(s.Low))
}

// LookAtSpace asks the file system.
func (fl *Flusher) LookAtSpace() (Space, error) {
	v, err := fl.Engine.Env.FS.Volume(fl.Engine.Env.Dir)
	if err != nil {
		return Space{}, err
	}
	durable, flushed := fl.Engine.Log.Durable(), fl.Engine.Log.Flushed()
	s := Space{Free: v.Free, Total: v.Total, Low: int64(fl.Engine.Log.SegmentSize()) + int64(durable-min(durable, flushed)) + min(v.Total/spaceShare, spaceMost), Inodes: v.FreeFiles, AllInodes: v.Files}
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
