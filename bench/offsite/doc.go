// Command offsite measures what a copy elsewhere costs and gives: how much slower writers are beside the process that
// sends, how old the copy is under a steady load, how many bytes are sent for each byte of the log, and how long a
// clone takes beside a plain copy of the store's folder. The copy is in a folder of the same disk, so that writers and
// the sender compete for it.
//
//	go run ./offsite [-n 100000] [-pairs 5] [-seconds 5] [-rate 300] [-lag 60s] [-only cost,lag,clone]
//		[-o OFFSITE.md] DIR
package main
