// Package scratch puts the folders of tests into memory, where the machine has a file system for
// that: most of what the tests waited for was fsync.
//
// Use, which TestMain calls, points TMPDIR at a folder of the process on /dev/shm, and so does
// what the process starts. It does so on Linux, where /dev/shm is a tmpfs with MinFree to spare.
// A TMPDIR that is set already is kept; with VARVE_TEST_DISK=1 (the race step of .ci/run, and
// .ci/long) everything stays on the disk. Disk is for the tests that need one.
//
// # Why this proves as much
//
//   - What a power cut leaves is judged on simulated disks (internal/vfs/sim, internal/vfs/crash).
//     A real disk below the tests never lost its power, so it had no say in that.
//   - A process that is killed loses nothing that the page cache has, on any file system; a tmpfs
//     is the page cache.
//   - The calls stay real: open, rename, link, flock, mmap, fsync, inotify, their errors and their
//     order between processes.
//   - What is different: syncfs is not trusted on a tmpfs (vfs.Barrier), fsync returns at once, so
//     that rounds meet other states, and two changes of a folder are more often within one tick of
//     the clock that its mtime is taken from. The runs on a disk have the other half.
//
// # What is left behind
//
// A process that is killed leaves its folder. Each has a file "lock", on which its process has a
// flock; the next process that calls Use removes those whose lock is free.
package scratch
