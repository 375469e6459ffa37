// Package journal changes files of a store so that each change can be undone: the previous file is
// kept in quarantine/ under a second name, and the change is recorded in the undo manifest,
// durably, before it is made. A Changer does both. The package also reads manifests, decides which
// of them are obeyed, and has the key for this decision.
//
// # The undo manifest
//
// quarantine/repair-<id>.undo.jsonl has one JSON object per line. The id is the time when the
// repair began (UTC, to the microsecond) and six random digits: the newest is the greatest. A line
// is durable before its change begins; the last one may be cut. Adoptions of one commit are
// recorded together: after a kill in between, up to 512 have no "now". Undo searches for these in
// log and archive: the version that followed "was" and has the file's bytes is recorded, then taken
// back. A file that got the embedding of a newer model when it was adopted has other bytes, and
// stays.
//
//	{"repair":"<id>","when":"…","folder":<number>}                  first
//	{"n":3,"do":"<verb>","path":"memories/x.json",                  a change
//	 "before":{"kept":"quarantine/…","size":…,"mtime":"…","hash":"sha256:…"},   absent: there was no file
//	 "after":{…},"any":true,                                        any: the result is recorded at the end
//	 "id":"x","was":<version>}                                      id: the log gets a new version
//	{"n":3,"now":<version>}                                         that version; with "was" if others had written meanwhile
//	{"end":true,"path":"…","after":{…}}                             the result for each place with any
//	{"ended":true,"durable":<LSN>}                                  last; without it the repair was cut
//
//	{"undone":true}                                                 an undo of it has begun
//	{"moved":<number>}                                              a migration has brought it to this folder
//
// Each line ends in ,"mac":"<64 hex digits>"}: HMAC-SHA256, with the key below, of "varve
// undo 1", NUL, the repair's id, NUL, and the line without that member. The folder is the
// number (inode) of the store's folder. A line is at most 64 KiB, a manifest 1 GiB.
//
// # Which manifests are obeyed
//
// quarantine/ is in every git clone; files that git ignores can be added by force, or arrive in an
// archive. A manifest says what is to be overwritten and removed, so a forged one must not be
// obeyed. It must be certain that this copy of the store wrote the manifest. So the proof must not
// be anything that the maker of a clone could put into it, or predict:
//
//   - A note inside the store (for example in wal/) is copied with an archive. Inode numbers, the
//     UUID and times of files can be guessed, or tried by the thousand, and a disk image has its
//     own. The machine's id is the same in all containers of an image.
//   - The boot id cannot be predicted, but is valid for one boot only.
//   - A random key in a folder of the user's (Options.StateDir: $XDG_STATE_HOME/varve/undo.key,
//     mode 0600, made by the first repair) is in no clone, lives as long as the user's home, and
//     nothing has to be recorded for each repair.
//
// The sum is in the line itself, so a kill never leaves a manifest without its proof, and a
// restarted log, or a lost wal/, does not affect it. A line that does not verify and with which the
// repair ended was cut while it was written, or torn with others of the same write, and its change
// had not begun. One behind which the repair went on, or that is whole except for its sum, was changed
// since, and the manifest is refused: what it says would be left out.
//
// The key belongs to the user, so it is valid for the user's other stores and copies too. The
// folder's number distinguishes these: it stays the same when the folder is renamed on its file
// system, and differs in a copy, or when a manifest arrives by git from another repaired clone of
// the same user. A migration records the move in the new place. Where folders have other numbers
// after each mount (some FUSE file systems) a repair can be undone until then.
//
// Without a key (no home folder, another user, another machine) a store is repaired nevertheless,
// RepairReport.NoUndo says why that cannot be undone, and Undo returns a *UndoForeign. The same
// holds for manifests of programs that wrote no sums: files that were set aside can be copied back
// by hand, from quarantine/. Undo without an id is refused if the newest manifest is foreign; it
// never uses an older one that the user has not named.
//
// A manifest with valid sums can do no more than a repair does: it names files that a repair
// changes, in folders that are checked on the way (no links), and the files that it copies back
// must have the hashes that it names.
package journal
