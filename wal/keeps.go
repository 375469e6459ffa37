package wal

import (
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Reach determines which versions of documents the log and its archive still have. A Reach must not be used by several
// goroutines at the same time, and must be closed. If the positions are asked for in ascending order, Reach opens each
// copy in the archive only once.
type Reach struct {
	l     *FileLog
	live  LSN // everything from this position on is in the log
	files *past.Files
}

// Reach returns a new Reach for the log and its archive.
func (a Archive) Reach() *Reach {
	return &Reach{l: a.l, live: a.l.Spilled(), files: a.l.Past().Files()}
}

// Live reports whether pos is the position of a version in the part of the log that a replay reads. It reads no
// file. It returns false for a number that cannot be the position of a frame, for example a version number that
// was invented when the index was rebuilt from the files.
func (r *Reach) Live(pos LSN) bool { return pos&7 == 0 && pos >= r.live }

// Keeps reports whether the version of a key at pos can still be read from the log or its archive. It looks for
// the frame in the file, or in the list of frames that lookedInto has made. The position alone is not sufficient:
// a copy written by a repair may lack the frame, and a log that was begun again has other frames at the same
// positions.
func (r *Reach) Keeps(key string, pos LSN) bool {
	if r.Live(pos) {
		return true
	}
	if pos&7 != 0 || pos < r.l.geo.Size {
		return false
	}
	if r.l.notedIn(key, pos) {
		return true
	}
	number := r.l.geo.Number(pos)
	if f, err := r.files.Open(number); err == nil && r.hasFrame(f, key, pos) {
		return true
	}
	if !r.files.FallOver(pos) {
		return false
	}
	f, err := r.files.Open(number)
	return err == nil && r.hasFrame(f, key, pos)
}

// hasFrame reports whether f, a segment or a copy of one, has a frame of the key at pos.
func (r *Reach) hasFrame(f past.Source, key string, pos LSN) bool {
	geo := r.l.geo
	if c, ok := f.(*past.Copy); ok {
		f = past.Sparse{Copy: c} // a frame has a checksum of its own
		before := c.Inflated()
		defer func() { r.l.lookedInto(geo.Number(pos), c, c.Inflated()-before) }()
	}
	b := make([]byte, min(readGuess, geo.End(geo.Number(pos))-pos))
	n, err := past.ReadFull(f, b, geo.Offset(pos))
	if err != nil {
		return false
	}
	h, err := geo.ParseHeader(b[:n], pos)
	if err != nil || h.Kind < past.KindUser {
		return false
	}
	if size := segment.HeaderSize + int(h.Length); size > n {
		b = make([]byte, size)
		if n, err = past.ReadFull(f, b, geo.Offset(pos)); err != nil || n < size {
			return false
		}
	}
	found, _, err := h.Check(b[segment.HeaderSize : segment.HeaderSize+int(h.Length)])
	return err == nil && string(found) == key
}

// Close closes the files that the Reach has opened.
func (r *Reach) Close() { r.files.Close() }
