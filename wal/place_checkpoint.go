package wal

import (
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

// The checkpoint is compared apart from the page. A program that copies an older store over an open one (rsync, tar,
// cp -a) takes its files one by one, and the checkpoint comes before wal/: at that moment the page and the segments
// are still those of this log. A process that flushed then would write into the copy of the checkpoint that the log
// was durable up to a position that the older segments, which come next, do not reach: a damaged log. So the page
// has the sequence of the newest checkpoint. One that is older is no checkpoint of this log. And of one that says
// the same, as the copy of a store that has written none since, the file tells: this process has the other open,
// which has no name any more.

// openedCheckpoint is what a process knows of the file of the checkpoint. flush.lock.
type openedCheckpoint struct {
	file     vfs.File // nil: nothing is known
	sequence uint64   // of the checkpoint in it, or of an earlier one
}

// knowCheckpoint opens the file of the checkpoint, to tell it from another one. A file that cannot be opened tells
// nothing.
func (l *FileLog) knowCheckpoint() {
	p := &l.place.checkpoint
	p.close()
	p.sequence = l.shared.Sequence() // first: until the file is opened another process may replace it, and write
	p.file, _ = l.o.FS.OpenFile(filepath.Join(l.o.Dir, "checkpoint"), os.O_RDONLY, 0)
}

func (p *openedCheckpoint) close() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// wroteCheckpoint notes what this process has written.
func (l *FileLog) wroteCheckpoint(c *Checkpoint) {
	l.shared.SetSequence(c.Sequence)
	l.place.checkpoint.sequence = c.Sequence
}

// sameCheckpoint returns an error that matches errs.ErrReplaced if the checkpoint that was read is an older one than
// this log has written. newest is the word of the page before it was read.
//
// Where the newest slot is damaged, the one before it holds: then the place of the newest has no slot that verifies.
func (l *FileLog) sameCheckpoint(c *Checkpoint, newest uint64) error {
	if c.Sequence >= newest || l.o.ReadOnly {
		return nil
	}
	slots, _, err := CheckpointSlots(l.o.FS, l.o.Dir)
	if err != nil || slots[newest%2].Err != nil {
		return nil
	}
	l.lose("the checkpoint is an older one")
	return l.Folder().Replaced()
}

// ownCheckpoint is sameCheckpoint for a process that is about to write, which also compares the file; flush.lock is
// held.
func (l *FileLog) ownCheckpoint(c *Checkpoint) error {
	if err := l.sameCheckpoint(c, l.shared.Sequence()); err != nil {
		return err
	}
	p := &l.place.checkpoint
	if p.file == nil {
		return nil
	}
	mine, err := p.file.Stat()
	if err != nil || mine.Nlink > 0 {
		return nil
	}
	at, err := l.o.FS.Stat(filepath.Join(l.o.Dir, "checkpoint"))
	if err != nil || at.Ino == mine.Ino && at.Dev == mine.Dev { // a file system that counts no links
		return nil
	}
	if c.Sequence > p.sequence { // another process has replaced a hard link, and has written since
		l.knowCheckpoint()
		return nil
	}
	l.lose("another checkpoint is there")
	return l.Folder().Replaced()
}
