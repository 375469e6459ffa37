// Package sender sends the log of a store to a remote: what is durable, as pieces, behind the writers. A Sender never
// holds up a writer, and has no lock of the store; its caller makes sure that one process of the machine sends.
//
// # A round
//
// Round asks the remote for its newest entry, compares it with the log, appends what the log has after it, and records
// in wal/sent (package wal/past) up to which mark the remote has the log, so that the archive keeps the rest. The
// remote is authoritative: wal/sent is a hint. A round that is interrupted anywhere is repeated; a piece that the
// remote has already is not sent again.
//
// # What a sender remembers
//
// The Binding connects one folder of one store with one remote: the ID of the remote, the epoch of the remote that this
// sender has begun, the epoch of the store's own log. It is kept outside of the store (a Keeper writes it, File keeps
// it in a file), so that a copied folder sends nothing. Before an epoch is begun, the request for it is recorded: an
// epoch that was begun although the answer was lost is recognised by its request.
//
// # A new epoch
//
// The sender begins an epoch, with an anchor at the mark from which a snapshot needs the log, and then saves that
// snapshot, when
//
//   - it has begun none yet, and the remote is empty;
//   - the log of the store has ended for a recorded reason (past.Log.Broken): a restored or repaired store;
//   - the log was purged, and the purges have waited for others long enough (Options.Gather). The log continues after a
//     purge, so until then the epoch does, too, and the remote has what was purged;
//   - the recipients who can read what is sent have changed (Options.Recipients);
//   - the log no longer has what the remote lacks: the remote was away for longer than the archive keeps, or the log
//     is damaged there. The gap is reported in Status.
//
// # When it stops
//
// Round returns an error that matches ErrStopped, and sends nothing from then on, when sending could supersede the
// entries of another sender:
//
//   - another machine has begun an epoch (TakenError);
//   - the remote has entries in this sender's epoch that the log does not have: a second sender with the same binding
//     (a cloned machine), or this machine was reset to an earlier state (DivergedError). An epoch of the store's own
//     log that is lower than the one that was sent also shows such a reset;
//   - the newest entry is damaged, and may be the beginning of another machine's epoch (DamagedHeadError);
//   - the user has decided to supersede the newest entry (Binding.Follows), and another machine has sent since
//     (OvertakenError);
//   - the remote has lost its entries, or the place has another remote (LostError): another disk may be mounted there;
//   - wal/sent is the record of another copy, which another user of the store has added (ClaimedError).
//
// Every other error is temporary: the next round tries again. Maintain checks for these errors before it makes a
// snapshot, after the snapshot is saved, and before it removes anything. If there is one, it drops the snapshot and
// removes nothing.
//
// # Snapshots
//
// A Source makes snapshots. They are due at the beginning of an epoch, and when Options.SnapshotBytes of log or
// Options.SnapshotEvery have passed since the last one. Older snapshots and the pieces before them are removed when two
// newer ones exist and no moment within Options.Keep needs them.
//
// # Purges
//
// The epoch that a purge begins has the log from Source.Base on, as the purge has left it: what was purged is erased in
// it. When its snapshot is saved, the pieces of earlier epochs are removed, and the earlier snapshots with them, except
// those that end before the store had anything of what was purged (Source.Erased) and that the pieces of the new epoch
// complete: their marks are in its string. remote.Snapshot.CompletedBy is how a reader finds that epoch. Which
// moments are lost is therefore known before a purge.
//
// # Assumptions
//
// The log below Source.Durable never changes, except that a purge erases payloads in place; the chain of checksums
// survives that.
package sender
