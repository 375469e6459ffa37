// Package working has the working memory of an agent: variables with a time to live, the state of
// its task, a scratchpad, and checkpoints that can be restored. A working memory belongs to a Scope
// and is stored by a Home.
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
// Local keeps working memory in the process, package working/redis in Redis or Valkey, and a store
// in its log and files. All homes pass the suite of package working/workingtest.
//
// Operations are data (OpPut, OpIncrement, OpRestore …). Home.Do performs one at a time, completely
// or not at all, in one order for all callers. Two other designs were considered and rejected:
//
//   - Functions that run inside the home's lock. Functions can neither be sent to Redis nor written
//     to a log, and a function that hangs would block all callers. Update, which takes a function of
//     the user, therefore reads, calls the function, and writes if the version is still the one that
//     it read (IfVersion); so do CompareAndSet and UpdateTask.
//   - Get and conditional put as the only operations, with everything else built on them. Then each
//     Set would have to read the counts of the scope and make them a condition, because of the
//     limits, so that every write would conflict with every other; an append would have to be
//     repeated each time another writer appends.
//
// Everything that concerns a whole scope (limits, eviction, checkpoints, counts) is therefore an
// operation, and everything that is the same in every home (JSON, reserved keys, patterns,
// defaults, clamping, differences) is in Memory, above Home.
//
// A Go process that keeps a scope uses State: Judge returns what an operation would change, as a
// Delta of plain data, without changing anything; Play makes the change. A home that has a log
// writes the Delta in between, on the condition that no other process has written to the scope
// since (Delta.Blind: without a condition), and plays the Deltas that other processes have written. To take
// many operations into one commit it judges and plays them on a Clone, one after another, and plays
// what was committed on the State itself; when the condition fails, it catches up and clones again.
// The home assigns versions, the same for every process that plays the Delta: State.Version plus
// one, except for a new scope, whose versions begin above those of all earlier scopes of its name.
// Deltas have outcomes, not conditions: the result of an increment, the keys that are evicted.
// Only making and restoring a checkpoint are recorded by its id, so that their entries are small;
// they are deterministic for a given State. Play reads no clock and follows no map order.
//
// # Checkpoints
//
// A checkpoint has the differences from the one before it: the items that changed, nil for a
// removed item; the first one has everything. Three forms were considered:
//
//   - Whole copies: 100 checkpoints of 1 MB take 100 MB.
//   - The newest state and, backwards, the differences to each checkpoint. Making a checkpoint is free, but
//     every later write has to save what it replaces, and a value that a server removes by itself
//     on expiry can no longer be saved.
//   - Forwards, as here. Making a checkpoint costs only what changed since the previous one. A value that
//     expires by itself costs nothing: the deadline that is kept with it determines whether a later checkpoint
//     still has it, and for how long.
//
// Each entry of the scratchpad is an item, named by its sequence number. A deleted checkpoint is
// merged into the next one; if the newest is deleted, its items count as changed again. So every
// checkpoint is always complete, and a chain has as many links as there are checkpoints.
//
// Restore saves the present state as a checkpoint, then replaces it: equal items are left alone,
// and a value that expires gets the lifetime that it had left. This is one operation. Retention
// deletes the oldest checkpoints, but neither of these two.
//
// # Time
//
// Lifetimes are measured by the home's clock: a monotonic clock in the process, the server's clock
// in Redis. In a store it is the machine's uptime, which all processes share, related to the wall
// clock at the moment when the first process needed it in this boot. So a wall clock that jumps, in
// either direction, neither expires values nor keeps them longer, even if another process opens the
// store afterwards. The exception is a machine that starts with a wrong time: in the first hour,
// values that are expired by its clock are hidden from every read, but return when the clock is
// corrected; only values that are still expired after that hour are freed (but a write that reaches
// a limit uses the room that it sees). No operation uses a time before the scope's newest change.
// Entries and checkpoints are ordered by sequence, not by time.
//
// No read returns an expired value. Later writes free the room of expired values, a few at a time,
// and immediately when a limit is reached.
//
// # Names and keys
//
// A Scope's Key is injective: empty levels are omitted, and within an id % / : { } and controls are
// written %XX.
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
//	  "lifetimes_at": "…",                     its tick: lifetimes count from here
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
//	      "keys": 3, "entries": 1,             what it has, together with the ones before it
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
// A store keeps this document as a File, with up to five more members at the end:
//
//	  "store": "<uuid>",                       the store in whose log lsn is a position
//	  "lsn": 8192,                             of the newest entry that is in it
//	  "whole_at": 4096,                        of the newest entry that does not need those before it, if known
//	  "updated_at": "…",                       the time of that entry, and of the file
//	  "checksum": "sha256:…"                   of all bytes before the comma before this line
//	}
//
// A file whose checksum differs was edited by hand, and is adopted if it is a valid document of its
// scope; see package varve's Working.
//
// Delta.Encode writes what one operation changes, in one line:
//
//	[{"do":"put","name":"vdraft","value":"…","deadline":1767323045000}]
//	do: attach, put, del, append, empty, mark, discard, restore, drop; see Change
//
// # Counterparts
//
// For readers who know the Python interface WorkingMemory:
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
// Differences. A stored null is found. A value with a TTL of zero expires immediately, a negative
// TTL is refused; there is no "0 means the default". Restore keeps newer checkpoints and lifetimes,
// and can be undone. Clear leaves checkpoints alone. Reserved keys are refused by all operations.
// Only the user's keys count for limits; at a limit a write is refused, or the least recently used
// values are evicted, depending on Options.Evict. Attaching again keeps created_at. total_keys
// counts each entry of the scratchpad.
//
// # Caveats
//
// The order of last use is exact in Local and, for Memories that evict, in Redis; a home that plays
// a log knows the reads of its own process only. Lookup reads one scope after the other, each at a
// different moment. Drop deletes everything of a scope; a concurrent operation of a second process
// may create the scope again. Checkpoints of a store are in the scope's file, which is always
// written as a whole; above 128 MiB, operations that would enlarge the file are refused
// (ErrTooLarge). While the store is open, a file of more than 1 MiB may lag behind the log for as
// many seconds as it has MiB, so that a small change each second does not rewrite the whole file
// each second; Flush and Close bring it up to date.
package working
