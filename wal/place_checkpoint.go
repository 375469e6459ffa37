package wal

import (
	"os"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

// The checkpoint is compared separately from the page. A program that copies an older store over an open one
// (rsync, tar, cp -a) copies the files one by one, and the checkpoint comes before wal/: at that moment the
// page and the segments are still those of this log. A process that flushed then would write into the copied
// checkpoint that the log was durable up to a position that the older segments, which are copied next, do not
// reach: a damaged log. So the page has the sequence of the newest checkpoint. A checkpoint with a lower
// sequence does not belong to this log. The sequence may be the same, as in the copy of a store that has written
// no checkpoint since. Then the file decides: the checkpoint file that this process has open has lost its name.

// openedCheckpoint is the checkpoint file as this process last read or wrote it. It is guarded by flush.lock.
type openedCheckpoint struct {
	file     vfs.File // open checkpoint file; nil: nothing is known
	sequence uint64   // sequence number of the checkpoint in the file, or of an earlier one
}

// knowCheckpoint opens the checkpoint file and keeps the file open, so that this process can detect its replacement. If
// the file cannot be opened, a replacement is not detected.
func (l *FileLog) knowCheckpoint() {
	p := &l.place.checkpoint
	p.close()
	p.sequence = l.shared.Sequence() // first: another process may replace the file before it is opened here
	p.file, _ = l.o.FS.OpenFile(filepath.Join(l.o.Dir, "checkpoint"), os.O_RDONLY, 0)
}

func (p *openedCheckpoint) close() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// wroteCheckpoint records, in the shared page and in this process, the sequence number of the checkpoint c, which this
// process has written.
func (l *FileLog) wroteCheckpoint(c *Checkpoint) {
	l.shared.SetSequence(c.Sequence)
	l.place.checkpoint.sequence = c.Sequence
}

// sameCheckpoint returns an error that matches errs.ErrReplaced if the checkpoint c, which was just read, is older than
// a checkpoint that this log has written. newest is the sequence number in the shared page; it must have been read
// before c.
//
// If the newest slot of the file is damaged, c comes from the other slot. Then the file was not replaced, and
// sameCheckpoint returns nil.
func (l *FileLog) sameCheckpoint(c *Checkpoint, newest uint64) error {
	if c.Sequence >= newest || l.o.ReadOnly {
		return nil
	}
	slots, _, err := CheckpointSlots(l.o.FS, l.o.Dir)
	if err != nil || slots[newest%2].Err != nil {
		return nil
	}
	l.lose("the checkpoint was replaced by an older version")
	return l.Folder().Replaced()
}

// ownCheckpoint is like sameCheckpoint, for a process that is about to write a checkpoint. It also returns an error if
// the checkpoint file is no longer the file that was opened. The caller holds flush.lock.
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
	if err != nil || at.Ino == mine.Ino && at.Dev == mine.Dev { // a file system that does not count links
		return nil
	}
	if c.Sequence > p.sequence { // another process has replaced a hard link, and has written since
		l.knowCheckpoint()
		return nil
	}
	l.lose("the checkpoint was replaced by another file")
	return l.Folder().Replaced()
}
