// Package verify compares the files of a store with each other: log, index, documents, vectors.
//
// Verify reads and compares; it changes nothing, takes no lock, and runs beside
// hosts that read and write. In this order:
//
// the folders      each is a folder, and not a link or anything else
// config.json      is it valid
// checkpoint       both slots, and whether its marks refer to frames of the log
// index            base and delta: blocks, order, lines, counts, sections
// memories/        each memory's file: exists, size, time, sha256; if it differs
//
//	it is examined: parses, has its own id, has the file name of that id;
//	each file: has an entry; its embedding: has its vector, bit by bit,
//	under its number; each vector: has a memory
//
// assemblies/      the same; its members: exist, and match the pairs of the index;
//
//	its composite: results from the vectors of its members
//
// vector_index/    mapping and FAISS file: blocks, heads, ids, none twice
// view_index/      each view's files: match the index of the same position
// wal/             each segment from the oldest: frames verify and link up to
//
//	durable; no segment is missing between them; no foreign
//	files; each entry is a record whose document has the hash
//	in its line; index and overlay have it
//
// wal/archive/     the checksum of each block; its frames verify and link up to the end
//
//	that the next segment records
//
// backups/         the same for each older index
// tmp, quarantine  leftovers, and how much was set aside
//
// With more than one worker, log, archive and backups are read while the files are read.
//
// Memory: the names of one folder, one buffer of the log, and one file for each worker. A sample is
// the share of the files and of the archive that the hashes of their names select; config,
// checkpoint, log and index are read completely.
//
// # Why there are no false alarms
//
// A finding must be correct whatever a running store does meanwhile:
//
//   - A file may contain any version from the newest below flushed up to the newest of all. flushed
//     is read before the file and the newest version after it, so the version that was read is
//     among them, even while others write. The versions are found along the chain that the records
//     form.
//   - A chain starts again with a memory written after its deletion. Until that memory is flushed,
//     a scan of the log finds the versions that may still be in the file.
//   - An absent file is correct if that chain has a deletion or begins there, and as long as a
//     newer version is not yet flushed: on file systems without exchange the old file is removed
//     before the new one is put in place, and the flusher may be stopped or killed between the two.
//   - After an unclean end the files of versions above flushed may contain anything until the first
//     flush has written them again: they are not checked before.
//   - Frames below durable never change, until their segment is recycled. Recycling begins with
//     zeros at the start of the segment, and only below spilled: a segment with these zeros is not
//     checked. Segments are removed in rising order, so a segment that is missing while an older
//     one exists was not recycled.
//   - A base or a delta never changes; the pair is loaded as a reader does it.
//   - Vectors are compared with the index that records them as complete: both are files that never
//     change. If the vectors are ahead of the index, or this is unknown, later changes are not
//     checked, and a missing vector is not damage.
//   - An assembly is written in the commit that changes a member's embedding or deletes it. So the
//     data that were read of an assembly and its members belong together if the assembly still has
//     the same version afterwards.
//   - Checkpoint slots and unbegun segments are written in place: if one appears wrong it is read
//     again.
//
// Misshapen and NotFolders check that each place of a store has an object of the right type: a
// file, or a folder. Links, FIFOs, sockets and devices are never opened or followed. Package places
// lists the places.
//
// Every mismatch is checked several times, after catching up with the log, and reported only if it
// persists.
package verify
