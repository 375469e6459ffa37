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

// low returns the number of free bytes below which the space on a volume is low. total is the size of the volume,
// segment the size of a segment of the log, and unfiled the number of bytes in the log that are not yet written to
// files.
func low(total, segment, unfiled int64) int64 { return segment + unfiled + min(total/share, most) }

// A file system may also run out of inodes: every file takes one. They are few if fewer are free than are needed for
//
//	what is in the log and in no file yet      a file for each document
//	a twentieth of them, at most 256           a round of the flusher creates up to 64 files at once
const (
	inodeShare = 20
	inodeMost  = 256
)

// Space is the free space on the disk of a store, in bytes and in files.
type Space struct {
	Free  int64 // bytes that may still be written
	Total int64 // size of the volume, 0 if unknown
	Low   int64 // the store warns if fewer bytes are free

	Inodes    int64 // files that may still be created
	AllInodes int64 // files that the volume may hold, 0 if unknown or not limited

	Unfiled int64 // number of files that must still be created for changes in the log
	Fits    int64 // number of memories, of the mean size in the store, for which there is space; see Fit
}

// Short reports whether the free bytes or the free inodes are below the limit.
func (s Space) Short() bool { return s.Total > 0 && s.Free < s.Low || s.fewInodes() }

func (s Space) fewInodes() bool {
	return s.AllInodes > 0 && s.Inodes < s.lowInodes()
}

// lowInodes returns the limit for free inodes: with fewer free inodes, Short returns true.
func (s Space) lowInodes() int64 { return min(s.AllInodes/inodeShare, inodeMost) + s.Unfiled }

// What a memory takes on the disk, see docs/howto/limits.md: whole blocks of its file, and its part of the inode, the
// folder, the index, the index of words, and the compressed log.
const (
	block        = 4096
	ofIndex      = 1200 // bytes for each memory
	ofLogPercent = 60   // bytes, as a share of the size of the memory's file
	usualMemory  = 1100 // bytes of a memory, assumed if the store has none yet
	mostMemory   = 64 << 20
)

// Fit sets s.Fits to the number of memories that still fit on the disk. memories and bytes are the number and the total
// size of the memories in the store; both may be wrong if the index is damaged.
func (s *Space) Fit(memories, bytes int64) {
	mean := int64(usualMemory)
	if memories > 0 {
		mean = min(max(bytes/memories, 1), mostMemory)
	}
	each := (mean+block-1)/block*block + mean*ofLogPercent/100 + ofIndex
	if s.Total > 0 {
		s.Fits = max(s.Free-s.Low, 0) / each
	}
	if files := max(s.Inodes-s.lowInodes(), 0); s.AllInodes > 0 && (s.Total == 0 || files < s.Fits) {
		s.Fits = files
	}
}

// Full reports whether the disk has no free byte or no free inode.
func (s Space) Full() bool { return s.Total > 0 && s.Free <= 0 || s.AllInodes > 0 && s.Inodes == 0 }

// Say returns a message about the space on the disk of the store in dir. Health and the event EventLowSpace contain the
// message.
func (s Space) Say(dir string) string {
	if s.fewInodes() && s.Free > 0 {
		still := ""
		if s.Unfiled > 0 {
			still = ", and the log has changes for " + human.Count(int(s.Unfiled), "more file", "more files")
		}
		return fmt.Sprintf("%s left on the file system of %s; every file needs an inode (see df -i)%s: remove files, "+
			"or delete memories", human.Count(int(s.Inodes), "inode is", "inodes are"), dir, still)
	}
	return fmt.Sprintf("only %s of disk space is left for %s, but the store needs %s: make room, or delete memories",
		human.Bytes(s.Free), dir, human.Bytes(s.Low))
}
