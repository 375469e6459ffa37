// Package hostile runs memctl on stores in which something was replaced by somebody
// who means harm, or by a tool gone wrong.
//
// Every path of a store (each file and folder of one that has everything in it, names
// that a store may have, the files of a backup, the inputs of a command, the places
// above a store where memctl looks for one) is replaced by every kind of thing: links to
// files and folders inside and outside, pipes, sockets, devices, folders, a sparse file of
// 8 TiB, an empty file, one that may not be read, other bytes; by what package forgery signs,
// notes and manifests that name places outside, or a clone of the store. On each, every
// command of memctl runs, as a process of its own, on a fresh copy.
//
// # What must hold
//
//	ends       within the bound (10 s), by itself or on its first SIGINT
//	memory     the process never has more than 256 MiB resident
//	codes      it ends with one of the exit codes that its help lists, and never panics
//	outside    nothing beyond the store has changed but what the command was asked to
//	           write: names, bytes, modes, times and inodes of everything around it
//	secrets    no text of a file outside is printed, or is in the store afterwards
//	kept       with the thing taken away again, every memory and assembly that was
//	           acknowledged is there, as it was
//	named      a command that fails names the place
//	whole      after repair --apply, verify has nothing to say
//
// # Running it
//
//	go test ./tests/hostile                     a sample of 10 s
//	VARVE_HOSTILE=full go test ./tests/hostile -timeout 2h
//	VARVE_HOSTILE=5m   go test ./tests/hostile
//	go test ./tests/hostile -hostile.seed 7     the sample of seed 7
//	go test ./tests/hostile -hostile.case '^store/tmp fifo put$' -v
//
// Each case is named by place, kind and command; a failure prints the line that runs it
// again. The sample is drawn by a seed, which is printed. TMPDIR says where the copies are.
package hostile
