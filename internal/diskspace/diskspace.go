package diskspace

import (
	"fmt"

	"github.com/varve-db/varve/internal/human"
)

// A full disk refuses puts, so the store warns while it can still continue. The space is low if less is
// free than the next steps may take together:
//
//	one segment of the log                     64 MiB, unless the store was made with others
//	what is in the log and in no file yet      it becomes files
//	another index                              base and delta are written beside the old ones
//	a twentieth of the disk, at most 128 MiB   for what other programs write meanwhile
const (
	share = 20
	most  = 128 << 20
)

// low returns the limit for a volume before there is an index.
func low(total, segment, unfiled int64) int64 { return segment + unfiled + min(total/share, most) }

// A file system may also run out of inodes: every file takes one.
//
//	a twentieth of them, at most 256           a round of the flusher creates up to 64 files at once
const (
	inodeShare = 20
	inodeMost  = 256
)

// Space is the space that is left for a store, in bytes and in files.
type Space struct {
	Free  int64 // bytes that may still be written
	Total int64 // size of the volume, 0 if unknown
	Low   int64 // if less is free the store warns

	Inodes    int64 // files that may still be created
	AllInodes int64 // files that the volume may hold, 0 if unknown or not limited
}

// Short reports whether the space is low.
func (s Space) Short() bool { return s.Total > 0 && s.Free < s.Low || s.fewInodes() }

func (s Space) fewInodes() bool {
	return s.AllInodes > 0 && s.Inodes < min(s.AllInodes/inodeShare, inodeMost)
}

// Full reports whether nothing more can be written, or no more files can be created.
func (s Space) Full() bool { return s.Total > 0 && s.Free <= 0 || s.AllInodes > 0 && s.Inodes == 0 }

// Say returns the message for Health and the event.
func (s Space) Say(dir string) string {
	if s.fewInodes() && s.Free > 0 {
		return fmt.Sprintf("%s left on the file system of %s, every file takes one (df -i shows them): remove files, or "+
			"delete memories", human.Count(int(s.Inodes), "inode is", "inodes are"), dir)
	}
	return fmt.Sprintf("%s left for %s, but the store needs %s: make room, or delete memories", human.Bytes(s.Free), dir,
		human.Bytes(s.Low))
}
