// Package sim runs several simulated processes on one crash.Disk, one at a
// time, in an order that a seed decides.
//
//	s := sim.New(seed)
//	s.Odds = sim.Odds{Switch: 4, Kill: 2000, Stop: 500}
//	s.CutAt(n, crash.KeepRandom)
//	for _, name := range []string{"a", "b"} {
//		s.Process(name, func(p *sim.Proc) { … open a store on p.FS, work … })
//	}
//	err := s.Run() // a deadlock, a panic, too many operations
//	s.Process("after", func(p *sim.Proc) { … recover, check … })
//	err = s.Run()  // on the disk that the cut left
//
// Each process is one goroutine and starts no others. Every operation on its FS is a point at which
// the scheduler may let another process run, stop one for a while (as SIGSTOP does, its locks
// held), kill one, or cut the power for all. Killed processes end through runtime.Goexit inside the
// operation: deferred functions run, and the operations that they attempt end in the same way. A
// write in flight may be done in part by a process that is killed, and completely by one that loses
// power; the pattern decides how much of it survives.
//
// Operations are numbered from 1 over all processes and boots. The same seed,
// odds and cuts over the same code give the same run, operation by operation.
//
// Time is simulated (Now): it passes with each operation, and jumps when all processes wait.
// Proc.WithTimeout makes contexts that end by it. A Lock whose context has another kind of deadline
// times out once nothing else can happen.
package sim
