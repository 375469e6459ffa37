// Package replaced tests that an open store belongs to the folder that it opened, not to a path. It
// has only tests.
//
// The rule: no process writes into, deletes from, or answers "durable" for a folder that is not the
// one it opened. When the folder at the path is another one, or its log is, the next call returns
// errs.ErrReplaced, and what was acknowledged before stays readable until Close.
//
// # The matrix
//
// TestReplaced: process A has a store open; an event happens to the folder; process B opens the store at
// the path, and both write. A cell is an event, the state of A when it happens, and the kind of A.
//
//	event    rm       rm -rf of the store; B creates one
//	         clean    git clean -fdX: the log, the checkpoint and the index go, the documents stay
//	         init     the folder is renamed away, memctl init makes a new store at the path
//	         swap     the folder is renamed away, and a restored store is renamed to the path
//	         link     the path is a symbolic link, which is switched to another store
//	         restore  the folder is renamed away or removed, memctl restore makes one at the path
//	         over     an older copy is extracted over the folder: tar, rsync, cp -a (which keeps the
//	                  inodes), a copy that removes each file first
//	         wipe     files of wal/ are removed: the segments; all but shared; all; the lock files;
//	                  all others
//	         bind     another store is mounted over the folder (root on Linux; elsewhere a skip)
//	state    idle     A has acknowledged writes and does nothing
//	         writing  goroutines write: new memories, updates, batches, transactions
//	         watching Store.Watch, a subscription of MCP, memctl watch, with edits by hand
//	         closing  A is closing, with 600 memories that are only in the log
//	         flushing A is flushing as many
//	kind     library  a process that uses package varve
//	         mcp      memctl mcp, the test is its client
//	         watch    memctl watch
//	         killed   A was killed before the event, idle only: findings there are not caused by A,
//	                  so these cells must be green whatever A does
//
// Event and variant, what B is (memctl mcp, a library process, memctl put), whether the store is on a
// disk or in memory, which operations an idle A is asked for, and the order in which both end (one
// of them may be killed) follow from the seed of a run.
//
// # Findings
//
// Each answer that a process got is kept outside of the store, with its times. A write that began
// before the end of the event and was acknowledged is excused if the event itself destroys what is
// only in the log (rm, restore after rm -rf, over, wipe) or is a git clean: no process can know at
// the time of the answer that its log is about to be removed. It is not excused where the documents
// and the process that has the entries survive: clean and wipe with memctl mcp, which puts what it
// had acknowledged and not filed into the log that it opens. The classes of findings:
//
//	lost-A     a write that A had acknowledged is neither in the store at the path nor in the folder
//	           that A had opened
//	lost-B     a write that B had acknowledged is not in the store at the path
//	lost-seed  a memory that the store at the path had before is gone or changed
//	lost-hand  a document that was saved by hand in the store at the path is gone
//	late       A has acknowledged a write that began after the event. For memctl mcp this is a finding only
//	           if the write is not in the store at the path
//	error      a call of A that began after the event returned an error other than ErrReplaced (memctl mcp
//	           may also return "no store" while no store is at the path), or Close of a library process
//	           returned nil
//	again      memctl mcp answered a second call with an error although there was a store
//	silent     a watch did not end, or memctl watch printed nothing, within 5 s; or memctl mcp served
//	           calls without printing "another store", "the store that is in its place" or "opened
//	           again" on stderr
//	touched    A changed the folder at the path (names, inodes, modes, times, bytes). memctl mcp and memctl
//	           watch may do so once they have printed that they serve another store. If the folder lost
//	           only its log, the comparison begins after a flush of A, and A may put its documents into
//	           files before B opens the store
//	created    A created something where there is no store
//	unread     something acknowledged cannot be read through the open handle of A
//	damage     memctl verify has findings in the store at the path or in the folder that A had
//	           opened, or one of them cannot be opened
//	refused    B got an error. After wipe and over, an error that names the damage is no finding: then
//	           memctl repair --apply runs before the store is judged
//	died, hung A has ended although it was not told to; A has not ended, or not answered, in 30 s
//
// memctl watch may end with ErrReplaced (exit status 10) or say that it watches another store.
// If lock files are removed, or files of wal/ that are neither segments nor shared nor lock files, nothing is
// lost: A continues, or reports that it must be opened again.
//
// # Counts
//
// With -v a table has a row for each cell and sums: runs, those with findings (red), those in which
// the event came while the flush or the close had not ended (in time), acknowledged and lost
// memories of A and B, excused ones, and how many findings of each class.
//
//	go test ./tests/replaced -v                                  one cell of each event: seconds
//	go test ./tests/replaced -replaced.runs 1 -v                 all cells once: a minute or two
//	VARVE_LONG=1 go test ./tests/replaced -v -timeout 2h         all cells, every variant, a new seed
//	go test ./tests/replaced -replaced.memctl /path/of/memctl    memctl is another build
//
// A run that fails prints the command that repeats it with its seed. The result also depends on the timing
// of the machine, so a failure may need several tries.
//
// # A relative path
//
// TestChdir opens a store by a relative path, changes the working directory to a place where the path is
// another store, and does one operation: the second store must stay unchanged, byte for byte.
package replaced
