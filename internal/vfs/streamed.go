package vfs

import "io"

// Streamed is f for a long file that is written from its beginning to its end: the system begins to write each
// piece to the disk as it comes, where it can. So the Sync at the end has little left to wait for, and the
// syncs of others do not wait behind all of the file: an append of 4 KB beside a file of 48 MB took 31 to
// 39 ms at most without it, 16 to 19 with it.
func Streamed(f File) io.WriterAt { return streamed{f} }

type streamed struct{ File }

// pieceAhead is the shortest piece that is not left to the Sync at the end.
const pieceAhead = 256 << 10

func (s streamed) WriteAt(p []byte, off int64) (int, error) {
	n, err := s.File.WriteAt(p, off)
	if err == nil && n >= pieceAhead {
		SyncAhead(s.File, off, int64(n))
	}
	return n, err
}

// SyncAhead has the system begin to write n bytes of a file to the disk, and waits for nothing. It promises
// nothing: what goes wrong is for Sync to say.
func SyncAhead(f File, off, n int64) {
	if s, ok := f.(interface{ SyncAhead(off, n int64) }); ok {
		s.SyncAhead(off, n)
	}
}
