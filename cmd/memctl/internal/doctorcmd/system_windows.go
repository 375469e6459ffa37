package doctorcmd

import "io/fs"

func kernel() string { return "" }

func openFiles() (soft, hard int64) { return 0, 0 }

func inode(fs.FileInfo) (uint64, bool) { return 0, false }
