// Package verify compares what a store has on disk: log, index, files, vectors.
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
//	view_index/      each view's files: are what the index of the same moment gives
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
//     it, so what stood in between is among them, also while others write. The
//     versions are found along the chain that the records form.
//   - A chain starts again with a memory written after its deletion. As long as that is not
//     flushed, a scan of the log finds what may still stand there.
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
//   - Vectors are compared with the index that says that they are complete as of it: both are files
//     that never change. Where they are ahead of it, or that is unknown, what changed since is not
//     judged, and what lacks is no damage.
//   - An assembly is written in the commit that changes a member's embedding or
//     deletes it. So what was read of an assembly and its members belongs together
//     if the assembly is still the same version afterwards.
//   - Checkpoint slots and unbegun segments are written in place: what looks
//     wrong is looked at again.
//
// Whatever does not match is looked at several times, after catching up with the
// log, and is reported only if it persists.
package verify
