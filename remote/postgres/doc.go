// Package postgres keeps a copy of a store's log in a PostgreSQL database. Remote implements remote.Remote.
//
// # The schema
//
// A schema of the database ("varve" unless the URL names another one) has the copy of one store:
//
//	remote     one row: version of the schema (1), ID of the remote, number and epoch of the newest entry, number of
//	           the oldest entry that is kept (floor)
//	entries    anchors and pieces, one row each, by consecutive numbers; rows are inserted and deleted, never changed
//	snapshots  descriptions of snapshots; a snapshot exists if its row is complete
//	parts      bytes of snapshots, 1 MiB a row
//	machines   the machines that use the remote
//
// Rows of entries and snapshots have a digest: the SHA-256 over all other columns (entry.go, snapshot.go), with the
// bytes of a piece represented by their own SHA-256. A row that was changed, or restored only in part, does not match
// its digest; this shows also in a database without checksums of its pages. Positions and chain hashes are 64 bit
// numbers in bigint, so a chain hash may show as a negative number.
//
// # Who decides
//
// The row of remote decides. Append, Begin and Prune lock it (FOR UPDATE) in a statement of its own, read the newest
// entry in a later one, and change it together with the entries, in one transaction. The lock must come first: a
// statement that waits for a lock continues with the other tables as they were before. The keys of entries (number;
// epoch and first position of a piece) refuse what the lock has missed.
//
// Each transaction sets what it depends on itself, because a connection pooler gives a connection with the settings of
// another client, and a database or a role may have defaults: READ COMMITTED, READ WRITE, synchronous_commit,
// and no statement_timeout. READ WRITE makes a replica refuse, so every transaction demands a primary.
//
// # Unknown outcomes
//
// A commit may wait for a standby. If that wait is cancelled, PostgreSQL reports success with a warning, and a failover
// can lose the commit. Therefore the driver never sends a request to cancel: a call whose context ends closes its
// connection and leaves the server to finish. A warning during the commit is an error, and leaves the outcome open.
// Such a commit is visible to the next reader, so Head, and whatever answers "added before", commits a record of its
// own with synchronous_commit on before it returns: what was committed before that is durable, on the standby also.
//
// # Connections
//
// Hosts other than this machine are reached by TLS with a verified certificate (sslmode=verify-full) unless the URL has
// another sslmode. Modes that fall back to plain text are refused. A password comes from PGPASSWORD or from a file that
// others cannot read (PGPASSFILE, ~/.pgpass). No prepared statement and no setting stays in a connection, so pgbouncer
// may pool transactions. A connection that is silent for a minute counts as lost.
//
// # Assumptions
//
// The database is PostgreSQL 12 or newer and keeps what it has committed (Open refuses fsync=off). A piece has at most
// 512 MiB. Deleted rows stay in the database's files until it vacuums them, and in its own backups and its archive of
// the write-ahead log.
package postgres
