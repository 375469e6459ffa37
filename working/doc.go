// Package working is what an agent has in hand right now: variables with a time
// to live, the state of its task, a scratchpad, and checkpoints to go back to. It
// belongs to a Scope and is kept by a Home.
//
//	m, err := working.Open(ctx, home, working.Scope{Project: "p", Session: "s"}, nil)
//	err = m.Set(ctx, "draft", text, working.Expires(time.Hour))
//	v, found, err := m.Get(ctx, "draft")
//	n, err := m.Increment(ctx, "attempts", 1)
//	_, err = m.Append(ctx, "the tests fail on Windows only")
//	cp, err := m.Checkpoint(ctx, "before the refactoring")
//	undo, err := m.Restore(ctx, cp.ID)
//
// # Homes
//
// Local keeps it in the process, package working/redis in Redis or Valkey, and a
// store in its log and files. All of them pass the suite of
// package working/workingtest.
//
// Operations are data (OpPut, OpIncrement, OpRestore …) and Home.Do carries out
// one at a time, completely or not at all, in one order for all callers. Two other
// designs were considered and rejected:
//
//   - Functions that run inside the home's lock. They can neither be sent to Redis nor
//     be written to a log, and one that hangs would hang all callers. Update, whose
//     function is the user's, therefore reads, calls it, and writes if the version
//     is still the one it read (IfVersion); so do CompareAndSet and UpdateTask.
//   - Get and conditional put as the only operations, everything else made of
//     them. Then each Set would have to read and guard the counts of the scope for
//     the sake of its limits, and every writer would fail because of every other one; an
//     append would be sent as often as another writer appends.
//
// What needs all of a scope (limits, eviction, checkpoints, counts) is therefore an operation, and
// what is the same in every home (JSON, keys that are reserved, patterns, defaults, clamping,
// differences) is Memory's, above Home.
//
// A Go process that keeps a scope uses State: Judge says what an operation would
// change, as a Delta of plain data, without changing anything; Play changes it.
// A home that has a log writes the Delta in between, under the condition that
// no other process wrote to the scope since (Delta.Blind: without one), and plays what
// others have written. To take many operations into one commit it judges and plays
// them on a Clone, one after another, and plays what was committed on the State itself; when the
// condition fails, it catches up and clones again. Versions are whatever the home counts up, the
// same for all who play: State.Version plus one, except for a new scope, which begins where no
// earlier one of its name has been. Deltas hold outcomes, not conditions: the value that an
// increment came to, the keys that an eviction took. Only a checkpoint and its restoring are named
// by id, so that their entries are small; State gets the same out of the same. Play reads no clock
// and follows no map order.
//
// # Checkpoints
//
// A checkpoint holds what differs from the one before it: the items that changed,
// nil where one is gone; the first one holds everything. Three forms were
// weighed:
//
//   - Whole copies: 100 checkpoints of 1 MB take 100 MB.
//   - The newest state and, backwards, what each checkpoint had instead. Making
//     one is free, but every later write has to save what it replaces, and a value
//     that a server removes by itself when it expires is not there to be saved.
//   - Forwards, as here. Making one costs what changed since the last; a value that
//     expires by itself costs nothing, as its deadline, kept with it, says whether
//     a later checkpoint still has it, and for how long.
//
// An entry of the scratchpad is an item of its own here, named by its sequence
// number. A checkpoint that is deleted is laid under the next one; the newest
// one's items count as changed again. So every checkpoint is always complete, and
// a chain has as many links as there are checkpoints.
//
// Restore makes the present state a checkpoint, then replaces it: what is equal is
// left alone, a value that expires gets what remained of its lifetime. It is one
// operation. Retention takes the oldest, but neither of these two.
//
// # Time
//
// Lifetimes go by the home's clock: a monotonic one in the process, the server's
// in Redis. In a store it is the machine's uptime, which all processes share, tied to
// the wall clock as it was when the first of them needed it in this boot. So a wall clock that
// jumps, either way, expires nothing and keeps nothing, even when another process opens the store
// then. A machine that starts with a wrong time is the exception: in the first hour, what its clock
// makes look old is gone for every read, but comes back when the clock is put back; only what is
// over after that hour is freed (but a write that meets a limit takes what room it sees). Nothing
// goes by an earlier time than the scope's newest change. Entries and checkpoints are ordered by
// sequence, not by time.
//
// What expired is gone for every read from that moment on. Its room is taken back
// by later writes, a few at a time, and at once when a limit is reached.
//
// # Names and keys
//
// A Scope's Key is injective: levels that are empty are left out, and within an id
// % / : { } and controls are written %XX.
//
//	project:p1/agent_type:coder/agent_instance:a/session:s1
//
// Keys are 1 to 1,024 bytes of UTF-8 and do not begin with "_", for any operation.
// Within a home an item is named
//
//	v<key>                  a value of the user
//	t                       the state of the task
//	n<16 hex digits>        an entry of the scratchpad, in checkpoints only
//
// # The document of a scope
//
// State.Encode writes it, DecodeState reads it: JSON, indent 2, names sorted.
//
//	{
//	  "scope": "project:p/session:s",          Scope.Key
//	  "created_at": "2026-01-02T03:04:05.000006Z",
//	  "version": 17,                           of the newest change
//	  "lifetimes_at": "…",                     its tick: what expires counts from here
//	  "values": {
//	    "draft": {
//	      "value": "…",                        any JSON
//	      "version": 12,                       of the change that wrote it
//	      "updated_at": "…",
//	      "expires_at": "…"                    absent: never; to the millisecond
//	    }
//	  },
//	  "task": {"value": {…}, …},               absent: none
//	  "scratchpad": [{"seq": 9, "content": "…", "timestamp": "…"}],
//	  "checkpoints": [                         oldest first
//	    {
//	      "id": "…", "description": "…", "created_at": "…",
//	      "lifetimes_at": "…",                 the moment from which remaining lifetimes count
//	      "keys": 3, "entries": 1,             what it holds, the ones before laid under it
//	      "values": {"draft": {…}, "old": null},        changed since the one before; null: gone
//	      "task": {…}, "task_gone": true,      at most one of them
//	      "scratchpad": [{…}], "scratchpad_gone": [4]
//	    }
//	  ],
//	  "changed_since": {                       the newest checkpoint; absent without one
//	    "keys": ["draft"], "task": true, "scratchpad": [9]
//	  }
//	}
//
// A store keeps it as a File, with four members behind the others:
//
//	  "store": "<uuid>",                       in whose log lsn is a position
//	  "lsn": 8192,                             of the newest entry that is in it
//	  "updated_at": "…",                       the time of that, and the file's
//	  "checksum": "sha256:…"                   of all bytes before the comma before this line
//	}
//
// One whose checksum is another was edited by hand, and is taken over if it is the
// document of its scope; see package varve's Working.
//
// Delta.Encode writes what one operation changes, in one line:
//
//	[{"do":"put","name":"vdraft","value":"…","deadline":1767323045000}]
//	do: attach, put, del, append, empty, mark, discard, restore, drop; see Change
//
// # Counterparts
//
// For who knows the Python interface WorkingMemory:
//
//	WorkingMemory(scope, storage, default_ttl_seconds)   Open(ctx, home, scope, &Options{TTL: …})
//	create(scope, default_ttl_seconds)                   the same; the home is chosen by the host
//	for_session(session_id, project_id,                  ForSession(session, project, agent), then Open
//	            agent_instance_id)
//	scope                                                Memory.Scope
//	is_using_fallback                                    Memory.UsingFallback
//	set(key, value, ttl_seconds)                         Memory.Set(…, Expires(d) or NoExpiry())
//	get(key, default)                                    Memory.Get, Memory.GetOr
//	delete(key)                                          Memory.Delete
//	exists(key)                                          Memory.Exists
//	list_keys(pattern)                                   Memory.Keys
//	get_all()                                            Memory.All
//	clear()                                              Memory.Clear
//	set_task_state(state)                                Memory.SetTask
//	get_task_state()                                     Memory.Task
//	update_task_progress(current_step,                   Memory.UpdateTask
//	            progress_percent, status)
//	append_scratchpad(content)                           Memory.Append
//	get_scratchpad()                                     Memory.Scratchpad
//	get_scratchpad_with_timestamps()                     Memory.Notes
//	clear_scratchpad()                                   Memory.ClearScratchpad
//	create_checkpoint(description)                       Memory.Checkpoint
//	restore_checkpoint(checkpoint_id)                    Memory.Restore
//	list_checkpoints()                                   Memory.Checkpoints
//	delete_checkpoint(checkpoint_id)                     Memory.DeleteCheckpoint
//	is_healthy()                                         Memory.Check
//	close()                                              Memory.Close
//	get_stats()                                          Memory.Stats, with the same names in its JSON
//
//	working_memory_backend                               which Home is given to Open; a store's is the default
//	working_memory_default_ttl_seconds                   Options.TTL
//	working_memory_max_items_per_session                 Options.MaxKeys for values, Options.MaxNotes for the scratchpad
//	InMemoryStorage(max_keys)                            NewLocal, and Options.MaxKeys
//	RedisStorage(key_prefix)                             redis.Open, and its Options.Prefix
//	ScopeContext(scope_type, scope_id, parent)           Scope
//	ScopeLevel                                           Level
//	scope_id, to_key_prefix()                            Scope.ID, Scope.Key
//	TaskState                                            Task, with the same names in its JSON
//	MemoryNotFoundError                                  ErrNotFound
//	MemoryConnectionError                                ErrUnavailable
//
// What differs. A stored null is found. A TTL of zero is over at once, a negative
// one is refused; there is no "0 means the default". Restore keeps newer
// checkpoints and lifetimes, and can be undone. Clear leaves checkpoints alone.
// Reserved keys are refused by all operations. Only the user's keys count for
// limits; at a limit a write is refused, or the least recently used go, by
// Options.Evict. Attaching again keeps created_at. total_keys counts entries of
// the scratchpad one by one.
//
// # Caveats
//
// What is least recently used is known exactly to Local and, of Memories that
// evict, to Redis; a home that plays a log knows its own reads only. Lookup asks
// scope after scope, each at its own moment. Drop forgets everything of a scope, and what a second
// process does to it at that moment may create it again. Checkpoints of a store lie in the scope's
// file, which is written as a whole; beyond 128 MiB of it what would make it larger is refused
// (ErrTooLarge). While the store is open, a file of more than 1 MiB may lag behind the log for as
// many seconds as it has MiB, lest a small change each second writes all of it each second; Flush
// and Close bring it up.
package working
