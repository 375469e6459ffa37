// Package redis keeps working memory in Redis or Valkey, alone or as a cluster:
// plain commands and Lua, no modules. It is tested with Redis 7.0 and uses no command that came
// after version 5, except ACLs (6).
//
//	home, err := redis.Open(ctx, redis.Options{URL: "rediss://agent:secret@host:6379/0?read_timeout=1s&pool_size=20"})
//	m, err := working.Open(ctx, home, scope, nil)
//
// # Keys
//
// All keys of a scope have one hash tag, its Scope.Key, so that a cluster keeps
// them on one node; <p> is Options.Prefix, "wm:" if nothing is said.
//
//	<p>{<scope>}:m          hash    created, seq, bytes; whole=1: the next checkpoint must be
//	<p>{<scope>}:v<key>     hash    v value, n version, t time; it has its own PEXPIRE
//	<p>{<scope>}:t          hash    the state of the task, likewise
//	<p>{<scope>}:i          hash    the user's items: v<key> → bytes of key and value
//	<p>{<scope>}:x          zset    those that expire, by their deadline
//	<p>{<scope>}:u          zset    the user's items by their last use
//	<p>{<scope>}:p          zset    the scratchpad: <seq, 20 digits>:<time>:<text>, by seq
//	<p>{<scope>}:c          zset    ids of checkpoints, by seq
//	<p>{<scope>}:c:<id>     hash    a checkpoint: i.… about itself, the rest item → cell
//	<p>{<scope>}:d          set     items that changed since the newest checkpoint
//	<p>{<scope>}:z          string  exists only within the script that increments
//
//	cell     <deadline>:<version>:<time>:<value>, empty: gone since the one before
//	times    Unix microseconds; deadlines Unix milliseconds, 0: none
//	seq      starts at the time in microseconds, so that a scope that was dropped
//	         and made again repeats none
//
// Redis removes a value when it expires; its entries in :i, :x and :u go with
// later writes, and no count takes them for something that is there.
//
// # Atomic
//
// Every operation is one script, which the server runs alone. A script that
// fails leaves what it wrote so far: each one therefore looks at the types of all
// keys it may write, judges conditions and limits, and writes only then. The
// first write is one that a server at its maxmemory refuses, if any is. Scripts
// are named by their hash and sent when the server does not know them.
//
// A command is sent once. When the connection breaks after that, a read is asked
// once more, a write is ErrOutcomeUnknown. When there is no connection, nothing
// was done: ErrUnavailable. How safe an acknowledged write is against a crash of
// the server is the server's setting; with appendonly yes and appendfsync always
// it survives kill -9.
//
// Options beyond the URL's own: cluster=true for a cluster. max_retries is
// ignored. ACL gives the rules of a user that may do what is needed.
//
// # Fallback
//
// With Options.Fallback the process stands in for Redis while it cannot be
// reached: UsingFallback is true, OnEvent is told, and what is read and written
// is a home in this process that began as nothing. Two processes see each their
// own. A goroutine looks for Redis every Options.RetryAfter; once it answers,
// Redis is asked again, and what was written meanwhile is handed to OnEvent and to
// Meanwhile, never merged: only the host knows which of two values is right.
//
// A write that was on its way when Redis went is ErrOutcomeUnknown, not written
// elsewhere. Wrong passwords and refusals are no reason to fall back.
//
// # Caveats
//
// go-redis logs rare faults of its pool on stderr, by a logger for the whole
// process: redis.SetLogger of go-redis replaces it. Failures to connect are kept
// out of it here. A server that evicts keys when it is short of memory
// (maxmemory-policy allkeys-…) may take parts of a scope: values are then missing,
// and a checkpoint that lacks its part says so (ErrCorrupt). Use noeviction or
// volatile-ttl.
//
// Lifetimes, times and the beginnings of sequences are by the server's clock; that
// of the process is never read. A server whose clock jumps forward removes what
// it takes for expired, and nobody can bring it back: let its clock be slewed, not
// set. One that jumps back, just when a scope was dropped and is made again, may
// repeat a version of the scope that is gone.
package redis
