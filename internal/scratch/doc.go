// Package scratch puts the folders of tests into memory if the machine has a file system for that:
// most of the tests' waiting time was fsync.
//
// Use, which TestMain calls, points TMPDIR at a folder of the process on /dev/shm, which processes
// that it starts inherit. It does so on Linux, where /dev/shm is a tmpfs with MinFree to spare. A
// TMPDIR that is set already is kept; with VARVE_TEST_DISK=1 (the race step of .ci/run, and
// .ci/long) everything stays on the disk. Disk is for the tests that need one.
//
// # Why this proves as much
//
//   - The effects of a power cut are tested on simulated disks (internal/vfs/sim,
//     internal/vfs/crash). A real disk below the tests never lost its power, so it proved nothing
//     about that.
//   - When a process is killed nothing in the page cache is lost, on any file system; a tmpfs is
//     the page cache.
//   - The calls stay real: open, rename, link, flock, mmap, fsync, inotify, their errors and their
//     order between processes.
//   - Differences: syncfs is not trusted on a tmpfs (vfs.Barrier); fsync returns immediately, so
//     that rounds find other states; and two changes of a folder are more often within one tick of
//     the clock of its mtime. The runs on a disk cover these cases.
//
// # What is left behind
//
// A process that is killed leaves its folder. Each has a file "lock", on which its process has a
// flock; the next process that calls Use removes those whose lock is free.
package scratch
