// Command killed writes to a server of the Memory Stores API, this one or another, whose process is killed again and
// again, and compares what the server has with a record of what it acknowledged:
//
//	go run ./killed -url http://127.0.0.1:7717 -key KEY [-clients 8] [-time 2m] [-every 10s] -- PROGRAM ARGUMENTS…
//
// It starts the program, creates a memory store, and writes to it by the given number of clients. Each client makes one
// request after the other, with a pause of 2 ms between them:
//
//   - It creates a memory, and updates it 18 times, every second time on condition of its hash. Then it deletes the
//     memory and creates another one.
//   - Each fifth request is an update, on condition of the hash, of one of four memories that all clients share.
//
// The program is killed (SIGKILL) at the given interval, and started again. Databases that the program uses must be
// started before, and are not killed. A request that has no answer, or is answered with 502, 503 or 529, counts as
// written or not written; no client is stopped by it.
//
// The output has these numbers:
//
//	acknowledged   creates, updates and deletes that were answered with success
//	conflicts      updates on condition that were refused with 409 (or 400 or 412), as they must be
//	unanswered     writes of which it is not known whether they happened
//	errors         other answers, by their status, with the text of the first
//	double wins    conditions on one content of a shared memory that more than one client was told to have won
//	lost           memories that at the end have another content than the acknowledged one, or than that of an
//	               unanswered write after it; shared memories from whose history an acknowledged content is missing
//	unreadable     memories that are listed, but cannot be read
//	inconsistent   memories whose content has another hash than their content_sha256
//
// -by-path is for servers that update a memory by a POST of its path to …/memories, and cannot delete one: then the
// clients delete nothing.
package main
