// Package fuzz tries to make the whole engine lose something. It has no code of
// its own, only tests:
//
//   - history: what callers were told, and what may be seen after it. It knows
//     nothing of how the store works.
//   - the script: one fixed workload that reaches every kind of work the engine
//     does, cut before every operation that changes the disk, with every pattern
//     of loss, and killed at every such operation; recovered; checked. Recoveries
//     are cut as well, at each of their places with each pattern.
//   - the simulator: random workloads of one and of three processes, switched,
//     stopped, killed and cut by chance, over several boots; beside somebody who
//     edits the files by hand; on volumes that lack exchange, links, leases, syncfs;
//     beside somebody who backs up, restores, spoils and repairs, and moves the store.
//   - embedding: random workloads with an embedder that fails now and then, while the
//     model is changed, from one dimension to another: each search is by one model.
//   - assemblies: random workloads of memories and their groups, a race of two
//     processes for the members, a script of merges cut everywhere.
//   - faults: each operation of the script, of that of the vectors and of that of the
//     merges fails once, with each error that it can have, wholly, in part, or although it
//     was done.
//   - rot: each bit flipped and each byte cut, one at a time, of small stores with
//     memories, assemblies and vectors.
//   - the model: several handles, kills and losses of power beside a plain map.
//   - native targets for what a store reads: the log's files, checkpoint, index,
//     configuration, shared page.
//   - the cases of known failures, by the numbers of docs/failures.md; tests/unfix
//     takes their fixes out, one at a time, and expects them to fail.
//   - golden files of the calls that one put, one flush and one open make.
//
// How to run it:
//
//	go test ./fuzz                                        the everyday share
//	VARVE_LONG=1 go test ./fuzz -timeout 1h               all of it
//	go test ./fuzz -v                                     and what was reached, and what not
//	go test ./fuzz -run Long -duration 10m -seed 1        until something breaks, from a seed on
//	go test ./fuzz -run Script -stride 1                  all second cuts of all first ones
//	go test ./fuzz -run Script -cut 812 -pattern lose-all one cut again
//	go test ./fuzz -run Sim -seed 17 -seeds 1 -ops        one seed again, each operation told
//	go test ./fuzz -run Faults -stride 1                  all errors of all operations
//	go test ./fuzz -run Upkeep -seed 1 -seeds 400         more seeds of one kind
//	go test ./fuzz -run Rot -all-bits -rot-file mem       all bits of all files so named
//	go test ./fuzz -run Rot -all-bits -rot-share 3/50     a fiftieth of all bits of all files
//	go test ./fuzz -fuzz FuzzRecovery -fuzzminimizetime 5x
//	VARVE_LONG=1 go test ./tests/unfix -timeout 2h        cases without their fixes
//
// A failure prints the command that repeats it.
//
// # What is checked
//
// What was acknowledged is there, whatever was cut or killed, unless a later
// write may have replaced it. What was in flight or answered by an error that
// leaves it open is there whole or not at all, a batch as a whole. What was
// refused is never seen. What was seen once is durable. Versions order writes as
// time does and are never used for two contents. Refusals were right at a moment
// of the call. After a flush, files, index, listings and counts agree byte for
// byte. The store opens every time, without damage and without a rebuilt index.
//
// An edit by hand is adopted, or its bytes are still there: in its place, in
// quarantine/, in tmp/ or in the log. One that was made of the version that stood
// there never replaces what was acknowledged since.
//
// A backup and a restored store that have their names are whole, and what was
// acknowledged is there; they are the store as it was at one moment of the backup, or at
// the version that was asked for. Of the places between which a store is moved one is
// the store, the one that was acknowledged. What was spoilt and is in log or archive
// has come back after repair, and in a sound store repair finds nothing to do, whichever process
// works on it.
//
// After rot: what is served is what was put, or an error that names the damage.
// A log that is damaged below what is attested serves the state as of the damage,
// read-only, and its report says so; one that was torn behind it, the state as of
// the tear. Nothing else: no other value, no deleted memory, no panic, no endless work, no heap out
// of proportion. In a store that was closed, verify names the file, and an offset at or before the
// damage. Only what has no second copy that the engine reads is lost: the file of a memory whose
// entry the log has let go of.
package fuzz
