// Package sim runs several simulated processes on one crash.Disk, one at a time, in an order that a seed determines.
//
//	s := sim.New(seed)
//	s.Odds = sim.Odds{Switch: 4, Kill: 2000, Stop: 500}
//	s.CutAt(n, crash.KeepRandom)
//	for _, name := range []string{"a", "b"} {
//		s.Process(name, func(p *sim.Proc) { … open a store on p.FS, work … })
//	}
//	err := s.Run() // an error is a deadlock, a panic, or too many operations
//	s.Process("after", func(p *sim.Proc) { … recover, check … })
//	err = s.Run()  // on the disk after the power failure
//
// Each process is one goroutine and starts no others. At every operation on its FS the scheduler may let another
// process run, stop a process for a while (as SIGSTOP does, with its locks held), kill one, or cut the power for all.
// Killed processes end with runtime.Goexit inside the operation: deferred functions run, and the operations that these
// attempt end in the same way. A write in progress may be done in part if its process is killed, and completely if the
// power fails; the pattern decides how much of it survives.
//
// Operations are numbered from 1 over all processes and boots. The same seed, odds and cuts with the same code give the
// same run, operation by operation.
//
// Time is simulated (Now): each operation takes time, and the clock jumps when all processes wait. Proc.WithTimeout
// returns contexts that end by this clock. A Lock whose context has a deadline of another kind times out when nothing
// else can happen.
package sim
