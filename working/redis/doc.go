// Package redis keeps working memory in Redis or Valkey, alone or as a cluster:
// plain commands and Lua, no modules. It is tested with Redis 7.0 and uses no command that came
// after version 5, except ACLs (6).
//
//	home, err := redis.Open(ctx, redis.Options{URL: "rediss://agent:secret@host:6379/0?read_timeout=1s&pool_size=20"})
//	m, err := working.Open(ctx, home, scope, nil)
//
// # Keys
//
// All keys of a scope have one hash tag, its Scope.Key, so that a cluster keeps them on one node;
// <p> is Options.Prefix, by default "wm:".
//
//	<p>{<scope>}:m          hash    created, seq, bytes; whole=1: the next checkpoint must be
//	<p>{<scope>}:v<key>     hash    v value, n version, t time; with a PEXPIRE of its own
//	<p>{<scope>}:t          hash    the state of the task, likewise
//	<p>{<scope>}:i          hash    the user's items: v<key> → bytes of key and value
//	<p>{<scope>}:x          zset    the items that expire, by their deadline
//	<p>{<scope>}:u          zset    the user's items by their last use
//	<p>{<scope>}:p          zset    the scratchpad: <seq, 20 digits>:<time>:<text>, by seq
//	<p>{<scope>}:c          zset    ids of checkpoints, by seq
//	<p>{<scope>}:c:<id>     hash    a checkpoint: i.… about itself, the rest item → cell
//	<p>{<scope>}:d          set     items that changed since the newest checkpoint
//	<p>{<scope>}:z          string  exists only within the script that increments
//
//	cell     <deadline>:<version>:<time>:<value>, empty: removed since the one before
//	times    Unix microseconds; deadlines Unix milliseconds, 0: none
//
// seq is a counter that starts at the time in microseconds, so that a scope that was dropped and created again never
// repeats a number.
//
// Redis removes a value when it expires; later writes remove its entries in :i, :x and :u, and no
// count includes them meanwhile.
//
// # Atomic
//
// Every operation is one script, which the server runs alone. A script that fails leaves what it
// has written so far. Each script therefore checks the types of all keys that it may write, then
// conditions and limits, and writes only after that. A server at its maxmemory refuses some kinds of
// writes. In a script that has such a write, the first write is one, so the server refuses it before the
// script has written anything. Scripts are called by their hash and sent if the
// server does not have them.
//
// A command is sent once. If the connection breaks after that, a read is sent once more, and a
// write returns ErrOutcomeUnknown. If there is no connection, nothing was done: ErrUnavailable.
// Whether an acknowledged write survives a crash of the server depends on the server's settings;
// with appendonly yes and appendfsync always it survives kill -9.
//
// Options beyond the URL's own: cluster=true for a cluster. max_retries is ignored. ACL returns the
// rules of a user with the necessary permissions.
//
// # Fallback
//
// With Options.Fallback an in-process home, empty at first, replaces Redis while Redis cannot be
// reached: UsingFallback returns true, and OnEvent is called. Each process has its own such home. A
// goroutine tries to reach Redis every Options.RetryAfter; once Redis answers it is used again, and
// the data written meanwhile are passed to OnEvent and returned by Meanwhile, but never merged:
// only the host can decide which of two values is right.
//
// A write that was in flight when the connection to Redis was lost returns ErrOutcomeUnknown and is
// not written elsewhere. Wrong passwords and refusals do not cause a fallback.
//
// # Caveats
//
// go-redis logs rare faults of its pool on stderr, by a logger for the whole process:
// redis.SetLogger of go-redis replaces it. This package keeps failures to connect out of that log.
// A server that evicts keys when it is short of memory (maxmemory-policy allkeys-…) may remove
// parts of a scope: values are then missing, and a checkpoint that lacks a part returns ErrCorrupt.
// Use noeviction or volatile-ttl.
//
// Lifetimes, times and the first numbers of sequences come from the server's clock; the clock of
// the process is never read. A server whose clock jumps forward removes values that appear expired,
// and they cannot be recovered: slew the server's clock, do not set it. If the clock jumps back
// just when a scope was dropped and is created again, versions of the dropped scope may be
// repeated.
package redis
