// Package hostile runs memctl on stores in which an attacker or a faulty tool has replaced
// something.
//
// Every path of a store (each file and folder of one that has everything in it, names that a store
// may have, the files of a backup, the inputs of a command, the places above a store where memctl
// looks for one) is replaced by every kind of thing: links to files and folders inside and outside,
// pipes, sockets, devices, folders, a sparse file of 8 TiB, an empty file, one that may not be
// read, other bytes; by forgeries of package forgery, notes and manifests that name places outside,
// or a clone of the store. On each, every command of memctl runs, as a process of its own, on a
// fresh copy.
//
// # What is checked
//
//	ends       within the bound (-hostile.longest, 10 s), by itself or on its first SIGINT
//	memory     the process never has more than 256 MiB resident
//	codes      it ends with one of the exit codes that its help lists, and never panics
//	outside    nothing outside the store has changed except what the command was asked to
//	           write: names, bytes, modes, times and inodes of everything around it
//	secrets    no text of a file outside is printed, or is in the store afterwards
//	kept       after the replacement is removed, every memory and assembly that was
//	           acknowledged exists, unchanged
//	named      a command that fails names the place
//	whole      after repair --apply, verify has no findings
//
// # Running it
//
//	go test ./tests/hostile -hostile 10s        a sample
//	VARVE_HOSTILE=full go test ./tests/hostile -timeout 8h
//	VARVE_HOSTILE=5m   go test ./tests/hostile
//	go test ./tests/hostile -hostile 10s -hostile.seed 7
//	go test ./tests/hostile -hostile full -hostile.seed 7 -hostile.part 3/16
//	go test ./tests/hostile -hostile.case '^store/tmp fifo put$' -v
//
// Each case is named by place, kind and command; a failure prints the line that runs it again. A
// seed, which is printed, determines the sample; the long tests have one of 20 minutes. A full run takes hours: parts
// with the same seed together run each case once. TMPDIR is the folder of the copies.
package hostile
