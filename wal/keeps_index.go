package wal

import (
	"cmp"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/past"
)

// Looking for one frame in a copy decompresses a part of the copy. Once the look-ups in a copy have decompressed as
// much as there is in the whole copy, lookedInto reads the whole copy once and lists its frames. The list belongs
// to one file, identified by inode, size and time: a copy that a purge or a repair has replaced is a different
// file. Frames that are in no list are looked up in the copy.

// mostNoted is the maximum number of frames in all lists of copyNotes together. A frame takes 8 bytes.
const mostNoted = 1 << 20

// copyNotes has lists of the frames in those copies in archive/ that are read often. A look-up in a list is faster than
// one in the copy.
type copyNotes struct {
	mu     sync.Mutex
	of     map[uint64]*copyNote // notes by segment number
	frames int
}

type copyNote struct {
	file   vfs.Info
	cost   int64        // bytes that the look-ups have decompressed
	frames []notedFrame // frames of the copy, in ascending order
}

type notedFrame struct {
	at  uint32 // offset in the segment, in units of 8 bytes
	key uint32 // low half of the hash of the key
}

func noteOf(off uint64, key string) notedFrame {
	return notedFrame{uint32(off / 8), uint32(xxhash.Sum64String(key))}
}

func compareNoted(a, b notedFrame) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key))
}

func (n *copyNote) isOf(file vfs.Info) bool {
	return n != nil && n.file.Ino == file.Ino && n.file.Dev == file.Dev && n.file.Size == file.Size &&
		n.file.Mtime.Equal(file.Mtime)
}

// notedIn reports whether the list of the copy that contains pos has a frame of the key at this position. It
// returns false if no list was made of the copy, or if the copy is no longer the file from which the list was
// made.
func (l *FileLog) notedIn(key string, pos LSN) bool {
	number := l.geo.Number(pos)
	c := &l.copies
	c.mu.Lock()
	note := c.of[number]
	found := false
	if note != nil {
		_, found = slices.BinarySearchFunc(note.frames, noteOf(uint64(l.geo.Offset(pos)), key), compareNoted)
	}
	c.mu.Unlock()
	if !found {
		return false
	}
	file, err := l.o.FS.Stat(filepath.Join(l.o.walDir(), past.CopyName(number)))
	if err == nil && note.isOf(file) {
		return true
	}
	c.mu.Lock()
	c.drop(number)
	c.mu.Unlock()
	return false
}

func (c *copyNotes) drop(number uint64) {
	if note := c.of[number]; note != nil {
		c.frames -= len(note.frames)
		delete(c.of, number)
	}
}

// lookedInto records that a look-up in a copy has decompressed cost bytes. When the look-ups in a copy have
// decompressed as much as a whole segment, lookedInto lists all frames of the copy.
func (l *FileLog) lookedInto(number uint64, f *past.Copy, cost int64) {
	c := &l.copies
	c.mu.Lock()
	note := c.of[number]
	if !note.isOf(f.Info()) {
		c.drop(number)
		if c.of == nil {
			c.of = map[uint64]*copyNote{}
		}
		note = &copyNote{file: f.Info()}
		c.of[number] = note
	}
	due := note.cost < int64(l.geo.Size) && note.cost+cost >= int64(l.geo.Size)
	note.cost += cost
	c.mu.Unlock()
	if !due {
		return
	}
	frames := l.framesIn(number, f)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[number] != note {
		return
	}
	note.frames = frames
	c.frames += len(frames)
	for other := range c.of {
		if c.frames <= mostNoted {
			break
		}
		if other != number {
			c.drop(other)
		}
	}
}

// framesIn reads the frames of a copy, from the beginning to the first damage. It returns the frames that have an
// entry of a user, at most mostNoted. It omits the frames that belong to the log itself.
func (l *FileLog) framesIn(number uint64, f *past.Copy) (frames []notedFrame) {
	w := past.NewWalker(l.geo, past.OneSegment(number, f), Mark{})
	_, h, err := w.Start(number)
	for w.At, w.Linked = (Mark{LSN: h.End(), Sum: h.Sum}), true; err == nil && len(frames) < mostNoted; {
		var payload []byte
		if h, payload, err = w.Next(l.geo.End(number)); err == nil && h.Kind >= past.KindUser {
			frames = append(frames, noteOf(uint64(l.geo.Offset(h.LSN)), unsafeString(payload[:h.KeyLen])))
		}
	}
	return slices.Clip(frames)
}
