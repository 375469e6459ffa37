// Package journal changes files of a store in such a way that each change can be undone: what
// stands in a place is kept in quarantine/ under a second name, and the change is written into
// the undo manifest, durably, before it is made. A Changer does both. The package reads the
// manifests as well, says which of them are obeyed, and has the key that tells.
//
// # The undo manifest
//
// quarantine/repair-<id>.undo.jsonl, one JSON object a line. The id is when the repair began
// (UTC, to the microsecond) and six random digits: the newest is the greatest. A line is durable
// before the change that it is about is begun; the last one may be cut. Adoptions that
// go together are written down together: killed amid them, up to 512 have no "now". Undo looks
// for these in log and archive: the version that followed "was" and has the file's bytes is
// it, and is written down before it is taken back. What got the embedding of a newer model as
// it was adopted has other bytes, and stays.
//
//	{"repair":"<id>","when":"…","folder":<number>}                  first
//	{"n":3,"do":"<verb>","path":"memories/x.json",                  a change
//	 "before":{"kept":"quarantine/…","size":…,"mtime":"…","hash":"sha256:…"},   absent: nothing stood there
//	 "after":{…},"any":true,                                        any: what it became is said at the end
//	 "id":"x","was":<version>}                                      id: the log is told a new version
//	{"n":3,"now":<version>}                                         which it was; with "was" where others had written meanwhile
//	{"end":true,"path":"…","after":{…}}                             what each place with any became
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
// quarantine/ is in every git clone, and what git ignores can be added by force, or come in
// an archive. A manifest says what is to be overwritten and removed; one that was forged is
// obeyed by nobody. Known must be: this copy of the store wrote it. So what tells may be
// nothing that the maker of the clone could put in it, or predict:
//
//   - A note inside the store (in wal/, say) comes along in an archive. Inode numbers,
//     the UUID, times of files: they can be guessed, or tried by the thousand, and a disk
//     image brings its own. The machine's id is the same in all containers of an image.
//   - The boot id cannot be foretold, and does not outlast the boot.
//   - A random key in a folder of the user's (Options.StateDir: $XDG_STATE_HOME/varve/undo.key,
//     mode 0600, made by the first repair) is in no clone, outlasts everything but the
//     user's home, and nothing has to be written down for each repair.
//
// The sum is in the line itself: there is no moment at which a kill leaves a manifest without its
// note, and a restarted log, or a wal/ that is lost, takes nothing along. A line that does not
// verify was cut as it was written, and what it is about had not begun.
//
// The key is the user's, so it vouches for his other stores and copies too. The folder's
// number tells these apart: it stays when the folder is renamed on its file system, and
// not when it is copied, or a manifest comes by git from a clone of his own that was repaired. A
// migration says in the new place that it moved. Where folders have other numbers after each
// mount (some FUSE file systems) a repair can be undone until then.
//
// Without a key (no home folder, another user, another machine) a store is repaired all the
// same, RepairReport.NoUndo says why that cannot be undone, and Undo is a *UndoForeign. So are
// manifests of programs that wrote no sums: what was set aside is copied back by hand, from
// quarantine/. Undo without an id is refused if the newest name is a stranger's; it does not
// turn to an older one that nobody has named.
//
// A manifest with its sums is not trusted with more than a repair does: it names files
// that a repair changes, in folders that are looked at on the way (no links), and what it
// copies back has the hash that it says.
package journal
