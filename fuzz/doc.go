// Package fuzz tries to make the whole engine lose data. It has only tests:
//
//   - history: a record of the answers that callers got, and a check of what they may see afterwards.
//     It is independent of how the store works.
//   - the script: one fixed workload that covers every kind of work of the engine. It is cut (the
//     power fails) before every operation that changes the disk, with every pattern of loss, and
//     killed at every such operation; then the store is recovered and checked. Recoveries are cut
//     as well, at each operation, with each pattern.
//   - the simulator: random workloads of one and of three processes, switched, stopped, killed and
//     cut at random, over several boots; while a user edits the files by hand; on volumes that lack
//     exchange, links, leases, syncfs; while the store is backed up, restored, damaged, repaired
//     and moved.
//   - the past: a store that was restored, cloned, or whose log was repaired, changed in every way,
//     by processes that are killed and cut: no version that was ever current leaves its history.
//   - the copy elsewhere: a store that is sent to a folder, over a network that loses, repeats and
//     delays, by processes that are killed and cut: each moment that is cloned is what was written.
//   - embedding: random workloads with an embedder that sometimes fails, while the model is
//     changed, from one dimension to another: each search uses one model.
//   - assemblies: random workloads of memories and their groups, a race of two
//     processes for the members, a script of merges cut everywhere.
//   - words: a script of rounds, merges, another language and a rebuild, cut and killed everywhere;
//     the simulator filters, searches by words and changes the language.
//   - faults: each operation of three scripts (the one above, that of the vectors, that of the merges)
//     fails once with each error that it can have: without effect, with a partial effect, or although it
//     was executed.
//   - rot: in small stores with memories, assemblies and vectors, each bit is flipped, and each file is
//     truncated at each byte, one case at a time.
//   - the model: several handles, kills and power failures, compared with a plain map.
//   - fuzz targets of go test for the files that a store reads: the log's files, checkpoint, index,
//     configuration, shared page.
//   - the cases of known failures, by the numbers of docs/failures.md; tests/unfix removes their
//     fixes, one at a time, and expects them to fail.
//   - golden files of the file system calls that one put, one flush and one open make.
//
// How to run it:
//
//	go test ./fuzz                                        the everyday share
//	VARVE_LONG=1 go test ./fuzz -timeout 1h               all cases
//	go test ./fuzz -v                                     also prints what was reached, and what was not
//	go test ./fuzz -run Long -duration 10m -seed 1        seeds from 1 on, until a failure or for 10 minutes
//	go test ./fuzz -run Script -stride 1                  a cut before every operation, also of the recoveries
//	go test ./fuzz -run Script -cut 812 -pattern lose-all one cut again
//	go test ./fuzz -run Sim -seed 17 -seeds 1 -ops        one seed again, with each operation printed
//	go test ./fuzz -run Faults -stride 1                  all errors of all operations
//	go test ./fuzz -run Upkeep -seed 1 -seeds 400         more seeds of one kind
//	go test ./fuzz -run Rot -all-bits -rot-file mem       all bits of the files whose names begin with mem
//	go test ./fuzz -run Rot -all-bits -rot-share 3/50     the third of 50 shares of all bits of all files
//	go test ./fuzz -fuzz FuzzRecovery -fuzzminimizetime 5x
//	VARVE_LONG=1 go test ./tests/unfix -timeout 2h        cases without their fixes
//
// A failure prints the command that repeats it.
//
// # What is checked
//
// An acknowledged write is in the store after every cut and kill, unless a later write may have
// replaced it. A write in flight, or with an unknown outcome, is in the store completely or not at
// all, and so is a batch. A refused write is never seen. A write that was seen once is durable. Versions
// are in the order of time and never used for two contents. A refusal was justified at some moment
// of the call. After a flush, files, index, listings and counts agree byte for byte. The store
// opens every time, without damage and without a rebuilt index.
//
// An edit by hand is adopted, or its bytes are kept: in its place, in quarantine/, in tmp/ or in
// the log. An edit of an older version never replaces a write that was acknowledged since.
//
// A backup or a restored store that has its final name is complete, with all acknowledged writes;
// it is the store as of one moment of the backup, or as of the requested version. Of the folders
// between which a store is moved exactly one is the store, the one that was acknowledged. Repair
// restores everything that was damaged and is in log or archive; in a sound store repair finds
// nothing to do, in every process.
//
// After rot: a read returns what was put, or an error that names the damage. A store whose log is
// damaged before the attested mark opens read-only, in the state as of the damage, and the report of the
// open names it. A store whose log is torn after that mark opens in the state as of the tear. A read never
// returns another value or a deleted memory, and no call panics, runs forever, or takes memory out of
// proportion. In a store that was closed, verify names the file, and an offset at or before the damage.
// Data is lost only if the engine has no second copy of it: the file of a memory whose entry the log has
// released.
package fuzz
