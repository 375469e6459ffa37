package vfs

import "io"

// Streamed is f for a long file that is written from its beginning to its end: what was written is synced
// before the next piece, each time that it is streamPiece. So neither the Sync at the end nor a sync of
// somebody else meanwhile waits for all of the file: an append of 4 KB beside one of 48 MB took 31 to 39 ms
// at most without it, 14 to 19 with it.
//
// It is Datasync and not sync_file_range, which is as good for the others but takes an error of ext4's
// delayed allocation away from the Sync that should report it.
func Streamed(f File) io.WriterAt { return &streamed{f: f} }

const streamPiece = 2 << 20

type streamed struct {
	f     File
	dirty int // bytes that were written since the last sync
}

func (s *streamed) WriteAt(p []byte, off int64) (int, error) {
	if s.dirty >= streamPiece {
		if err := s.f.Datasync(); err != nil {
			return 0, err
		}
		s.dirty = 0
	}
	n, err := s.f.WriteAt(p, off)
	s.dirty += n
	return n, err
}
