// Package heal looks after what has gone wrong in a store's folder.
//
// # Verify
//
// Verify reads and compares; it changes nothing, takes no lock, and runs beside
// hosts that read and write. In this order:
//
//	the folders      is each one, and no link or anything else
//	config.json      is it valid
//	checkpoint       both slots, and whether its marks name frames of the log
//	index            base and delta: blocks, order, lines, counts, sections
//	memories/        each memory's file: there, size, time, sha256; what differs is
//	                 looked at closely: parses, its own id, in the place of that id;
//	                 each file: has an entry; its embedding: has its vector, bit by bit,
//	                 under its number; each vector: has a memory
//	assemblies/      the same; its members: are there, and the pairs of the index;
//	                 its composite: is what the vectors of its members give
//	vector_index/    mapping and FAISS file: blocks, heads, ids, none twice
//	wal/             each segment from the oldest: frames verify and link up to
//	                 durable; no segment is missing between them; nothing foreign
//	                 lies there; each entry is a record whose document has the hash
//	                 that its line says; index and overlay know it
//	wal/archive/     the checksum of each block; what it holds reaches to where
//	                 the next segment says that it ended
//	backups/         the same for each
//	tmp, quarantine  leftovers, and how much was set aside
//
// With more than one worker log, archive and backups are read while the files are.
//
// Memory: the names of one folder, one buffer of the log, and one file for each
// worker. A sample is the share of the files and of the archive whose name's hash
// is its part of the parts; config, checkpoint, log and index are read whole.
//
// # Why there are no false alarms
//
// A finding must hold against everything that a running store does meanwhile:
//
//   - A file may hold any version from the newest below flushed up to the newest
//     there is. flushed is read before the file and the newest version after
//     it, so what stood in between is among them, whoever wrote meanwhile. The
//     versions are found along the chain that the records form.
//   - A chain begins anew with a memory written after its deletion. As long as
//     that is not flushed, a scan of the log finds what may still stand there.
//   - An absent file is right where that chain has a deletion or begins, and as long
//     as a newer version waits to be flushed: where files cannot be exchanged the old
//     one is taken away before the new one comes, and the flusher may be stopped or
//     killed between the two.
//   - After an unclean end what stands above flushed may be anything until the
//     first flush has written it again: it is not judged before.
//   - Frames below durable never change, until their segment is recycled. That
//     begins with zeros at its start, and only below spilled: a segment that has
//     these there is not judged. Segments go in rising order, so one that is
//     missing while an older one is there was not recycled.
//   - A base or a delta never changes; the pair is loaded as a reader does it.
//   - Vectors are compared with the index that says that they are complete as of
//     it: both are files that never change. Where they are ahead of it, or nobody
//     knows, what changed since is not judged, and what lacks is no damage.
//   - An assembly is written in the commit that changes a member's embedding or
//     deletes it. So what was read of an assembly and its members belongs together
//     if the assembly is still the same version afterwards.
//   - Checkpoint slots and unbegun segments are written in place: what looks
//     wrong is looked at again.
//
// Whatever does not match is looked at several times, after catching up with the
// log, and is reported only if it persists.
//
// A store that cannot even be opened read-only is looked at by Ground, which
// needs neither log nor index: what is missing below, and which files are no
// memories.
//
// # Plan and Apply
//
// Plan makes actions of the findings: what is done, for which of them, from which
// copy, and what is lost, which is only what no copy holds. It changes nothing.
// What heals, in this order: log, archive, the files (for the index), salvage.
//
//	before anything else
//	  make room for the folder       a link, or what else is in its place: it itself, and nothing that
//	                                 it leads to. Nothing is given up in the same repair
//	while nobody else has the store open (open.lock and attach.lock exclusively)
//	  write a valid config.json      members that are not valid get their defaults
//	  write the checkpoint anew      the slot that holds; else opening reads the segments
//	  begin the log anew             see renew.go
//	  set the segment aside          it was released: into the archive if it is sound
//	  set the index aside            opening makes it anew
//	beside others, each under flush.lock
//	  rebuild the index              from log and files
//	  set aside                      strangers that are no memories, copies, damaged backups
//	  restore the file               byte for byte, with its time
//	  adopt                          an edit; a new file; never what was deleted. Hundreds in one commit
//	  salvage                        below
//	  record as lost                 its line is kept in the note, its entry is deleted
//	  take out what is missing       members that are not there, when that is asked for
//	  recompute the composite        of its members' embeddings
//	  make the vectors anew          of all embeddings; the old ones stay until then
//
// Apply looks again under the lock before each action, and at everything when it
// is done, until there is nothing more to do. What would need that others are
// gone waits, and names them.
//
// A document's only copy may lie under another name, or in the other folder, where
// somebody has moved it: then it is put back from there, or adopted, before that file is set
// aside. What is over a limit of today's config.json is not adopted: it counts as not valid.
//
// Nothing is destroyed: what is replaced or taken away has a second name in
// quarantine/ before, durably, with a note that says why.
//
// Salvage: a document that breaks off is read as far as it goes; of a conflict
// that a merge has marked the first side is taken. What comes of it is a new
// version, whose metadata has "varve_partial": true. The file is kept. The same
// is done with a file that still reads, but has rotted and has no copy: what it
// says is not to be relied upon.
//
// # Purging
//
// PurgeQuarantine and PurgeParked overwrite what was set aside or parked of some documents
// (Traces says what is). flush.lock is held. In this order: the undo manifests are rewritten
// without the lines about it; what goes is renamed to <name>.purged, and the folder synced
// (a parked file keeps its name, which says what was known of it); each file is opened and
// leased, overwritten, synced, and removed. A piece of the log that
// has entries of others is written again without those that go, and takes the place of the
// old one, which is overwritten under its second name <name>.purged. Done again after a kill
// or an error, whatever is called .purged is overwritten first.
//
// What could not be overwritten is in Unwiped, as an *vfs.UnwipedError, or in what
// PurgeParked returns as held, and in varve.PurgeReport.Left:
//
//	open elsewhere      it stays, with its name; close it there, and purge again
//	not writable        likewise
//	a second name       its name in the store is removed, its bytes are that name's
//
// Only files that others may have mapped, of the index and the vectors, are removed without
// being overwritten when somebody has them open, or nobody can tell: unlinked names them, and
// varve.PurgeReport.Unlinked. Any other failure of a write or sync ends the purge with an
// error, and the file keeps the name under which the next one finds it. Unread are files
// that may hold something and cannot be read through; they stay.
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
// nothing that whoever made the clone could put in it, or foretell:
//
//   - A note inside the store (in wal/, say) comes along in an archive. Inode numbers,
//     the UUID, times of files: they can be guessed, or tried by the thousand, and a disk
//     image brings its own. The machine's id is the same in all containers of an image.
//   - The boot id cannot be foretold, and does not outlast the boot.
//   - A random key in a folder of the user's (Options.StateDir: $XDG_STATE_HOME/varve/undo.key,
//     mode 0600, made by the first repair) is in no clone, outlasts everything but the
//     user's home, and nothing has to be written down for each repair.
//
// The sum is in the line itself: there is no moment at which a kill leaves a manifest without
// its note, and a log that begins anew, or a wal/ that is lost, takes nothing along. A line that
// does not verify was cut as it was written, and what it is about had not begun.
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
//
// Undo puts back what stood there, the damage included, if nothing has changed
// in these places since; quarantine keeps what it has.
package heal
