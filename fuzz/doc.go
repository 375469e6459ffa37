// Package fuzz tries to make the whole engine lose something. It has no code of
// its own, only tests:
//
//   - history: what callers were told, and what may be seen after it. It knows
//     nothing of how the store works.
//   - the script: one fixed workload that reaches every kind of work the engine
//     does, cut before every operation that changes the disk, with every pattern
//     of loss, and killed at every such operation; recovered; checked.
//   - the simulator: random workloads of one and of three processes, switched,
//     stopped, killed and cut by chance, over several boots.
//   - faults: each operation of the script fails once, with each error that it can have.
//   - the cases of known failures, by the numbers of the list that the project keeps.
//   - golden files of the calls that one put, one flush and one open make.
//
// How to run it:
//
//	go test ./fuzz                                        two minutes at most
//	go test ./fuzz -run Long -duration 10m -seed 1        until something breaks, from a seed on
//	go test ./fuzz -run Script -cut 812 -pattern lose-all one cut again
//	go test ./fuzz -run Sim -seed 17 -seeds 1             one seed again
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
package fuzz
