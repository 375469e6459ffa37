// Package remote describes a copy of a store's log in another place: a folder on another disk, an object store, a
// database. The log is one string of bytes; the remote keeps it as pieces, and decides which piece comes next.
// Package remote has the interface Remote, the types that pass through it, and what is the same for every place. The
// places are packages of their own, remote/dir for a folder; package remotetest has the tests that each of them must
// pass.
//
// # The string
//
// A Piece is whole batches of one segment of the log, byte for byte as wal/past.Log.Pieces reads them, so a position
// has the same bytes in the store and in every copy of it. Positions may be skipped between two pieces (the zeros at
// the end of a segment are not sent): To minus From is not the length of the bytes, and the position of the bytes
// follows from their first frame. A remote never parses the bytes.
//
// A mark is a position with the checksum of the last frame before it. Every frame names the checksum of its
// predecessor, so two strings that agree in a mark agree in everything before it. A piece names the marks at which it
// begins and ends; a remote appends the piece only if the string ends exactly at the first of these marks.
//
// # Epochs
//
// A remote keeps strings of one store. Whatever deliberately begins another string (the first copy, a restored or
// repaired log, a purge, a gap, another machine that takes over) begins an epoch with an Anchor: the mark at which the
// string of that epoch begins. Pieces and anchors are the entries of a remote, which it numbers in their order. Epochs
// are numbered from 1. A sender of an earlier epoch is refused from then on, even if the string happens to end where
// its piece begins. Strings of earlier epochs can be read until they are pruned.
//
// # What a remote must guarantee
//
//   - Append and Begin are atomic, and durable when they return nil.
//   - Of several concurrent calls of Append or Begin that follow the same entry at most one succeeds; the others
//     return *MovedError. It makes no difference how long a caller sleeps, nor what was pruned meanwhile.
//   - Head returns a state that is durable, and not older than any call that returned nil before Head was called.
//   - An entry is never changed. Prune removes the oldest entries; the newest one stays, because the next one needs it.
//   - Read returns each piece exactly as it was appended, in order and without a gap, or an error.
//   - A snapshot is listed when it is complete and durable and its bytes were read back, and not before.
//
// # Unknown outcomes
//
// An error of Append or Begin other than *MovedError, errs.ErrInvalid and *OtherStoreError leaves the outcome open: the
// entry may have been added, or may be added later. Whether a piece was added is decided by its bytes, not by its
// Request: the caller calls Head, and compares the mark of the newest entry with the marks of the piece. Appending the
// same piece again is always safe. If it is already the end of the string, Append returns nil; if other pieces follow,
// it returns *MovedError.
//
// # Verification
//
// Verify reads a copy: every frame of every piece, the chain over all of them, and, if that is asked for, the bytes of
// the snapshots. The copy is complete if a snapshot exists that sound pieces complete up to the newest entry. It can be
// restored if the bytes of such a snapshot were read and are sound: without reading them nothing is known of that.
//
// # Snapshots
//
// A snapshot is one stream of bytes that has the state of the store up to a position; the pieces after it are its
// log. The remote treats it as opaque, with a name, a size and a SHA-256. Begin is the mark from which pieces are
// needed to complete it, and no moment before End can be restored from it.
//
// # Formats and sizes
//
// Package remote has no file format of its own: each place has one, and draws it in its package comment. What every
// place keeps unchanged are the bytes of pieces and snapshots. Their Format says how they are read:
//
//	1  the bytes of a piece are frames, as package segment draws them: byte 0 is the first byte of a frame, at the
//	   offset Piece.At in its segment, and the end is the end of the last frame, so that From.LSN <= At and
//	   At + len(Bytes) == To.LSN; the bytes of a snapshot are a pack, as package internal/copy/pack draws it
//	2  the same, sealed: package remote/sealed draws it; From, To, Begin and End are masked
//
// A program that meets a higher format refuses the copy: see FormatError. A piece has at most MostPiece bytes. A place
// may be hostile: a reader takes memory for the bytes that have arrived, never for a size that the place claims
// (ReadAll, NewBody), and uses nothing before Piece.Check or the SHA-256 of a snapshot agrees.
//
// # Bad input and bad luck
//
// What can go wrong with a copy, and the tests of it. Run in TestRemote of each place are those of package remotetest.
//
//	wrong password                 TestErrors in remote/postgres, remote/s3
//	no TLS                         TestErrors in remote/postgres
//	the address of a replica       TestUnsuitableServers in remote/postgres
//	a newer schema or format       TestErrors in remote/postgres, TestDamagedFolder in remote/dir,
//	                               TestNewerFormat in tests/offsite, TestFile in remote/sender
//	a full bucket, database, disk  TestErrors in remote/s3, TestFullDatabase in remote/postgres,
//	                               TestFullDisk in tests/offsite
//	no conditional writes          TestUnsuitable in remote/s3, TestRefused in remote/dir
//	two stores in one place        TestRemote in remote/dir, remote/s3, remote/postgres, TestBind in remote/sender
//	a copied folder, both used     TestCopiedFolder in tests/offsite, TestStopped in remote/sender
//	two users of one store         TestPlaceOfASecondUser, TestCopyTakenByASecondUser in tests/offsite
//	a machine that was rolled back TestStopped in remote/sender, TestTakeOfAnOlderClone in tests/offsite
//	a machine that sleeps          TestRemote in each place, TestSleeperBeforeRename in remote/dir,
//	                               TestPruneBesideSleepingWriter in remote/s3, TestGap in remote/sender
//	a wrong clock                  TestRetention, TestPurgesGather in remote/sender,
//	                               TestCloneAtAWrongClock in tests/offsite
//	damage and missing objects     TestDamagedEntry, TestDamagedSnapshot in remote/dir, TestDamage in remote/s3,
//	                               remote/postgres, TestCloneOfADamagedCopy, TestCloneIsNeverLess in tests/offsite
//	a listing that lags            TestListingLags in remote/s3
//	a full disk here               TestFullDisk in tests/offsite
//	kill and loss of power         TestCutAnywhere in remote/dir, TestTrouble in remote/sender,
//	                               TestKilledSender, TestKilledPurge, TestCloneCut in tests/offsite,
//	                               TestSimOffsite, TestSimOffsiteSealed in fuzz, TestKilledServer in remote/postgres
//	an older program               as for a newer format; TestTags in remote/sender
//	a context that ends            TestRemote in each place, TestCancelledAnywhere in tests/offsite
//	a wrong or lost key            TestSealedCopy in cmd/memctl, TestOtherSigner, TestForged in remote/sealed,
//	                               TestKeysVanish, TestTakeOfASealedCopyWithoutKeys in tests/offsite
//
// # Assumptions
//
// One store has one sender at a time (a lock on its machine). Nothing depends on that for safety: two senders of
// different strings compete for the next entry, and the loser stops.
package remote
