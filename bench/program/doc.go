// Command program measures memctl as a program: how large it is as built for a release, plain and
// packed by gzip, and how long it takes from its start to its end.
//
//	go run ./program [-quick] [-runs 101] [-o PROGRAM.md]
//
// Sizes are those of -trimpath -ldflags "-s -w" without cgo, for each system and processor of a
// release; -quick builds for this machine only and writes no file unless -o is given. A time is the
// median of the runs of one command, with the least and the greatest beside it. It is measured from
// before the process is started until it has ended. The first runs, which load the program into memory,
// do not count. On a busy machine, use the CPU time that is printed beside it. Commands that open a store
// use one with 1,000 memories.
package main
