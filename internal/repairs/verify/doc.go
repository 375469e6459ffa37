// Package verify compares the files of a store with each other: log, index, documents, vectors.
//
// Verify reads and compares; it changes nothing, takes no lock, and runs while other processes read and
// write the store. It checks, in this order, that
//
//	the folders      are folders, and not links or anything else
//	config.json      is valid
//	checkpoint       has sound slots, whose marks refer to frames of the log
//	index            has sound blocks, order, lines, counts and sections, in base and delta
//	memories/        has a file for each entry of the index, with the size, time and sha256 of the entry (a
//	                 file that differs is examined: whether it can be parsed, which id it has, and whether
//	                 its name belongs to that id); has an entry for each file; each embedding is, bit by
//	                 bit, the vector with its number, and each vector has a memory
//	assemblies/      the same; the members exist and match the pairs of the index, and the composite
//	                 results from the vectors of the members
//	notes/           the same as memories, without vectors
//	wal/             has every segment from the oldest on, whose frames are sound and linked up to durable,
//	                 and no foreign files; each entry is a record whose document has the hash in its line,
//	                 and index and overlay have it
//	wal/archive/     has sound blocks, and frames that are linked up to the end that the next segment
//	                 records
//	overlay          has positions of entries of the same keys
//	backups/         has sound older indexes
//	wal/purges, wal/purged-texts, wal/writers
//	                 have sound lines
//	vector_index/    has mapping and FAISS file with sound blocks and heads, and no id twice
//	working/         has sound files, which the log continues
//	view_index/      has files of each view that match the index of the same position
//	tmp, quarantine  leftovers, and how much was set aside
//
// With more than one worker, which is the default, the steps from wal/ to vector_index/ run while the
// documents are read.
//
// Two workers read the documents. More of them gain nothing, also when no file is in the page cache: the
// processors are busy by then. With 100,000 memories of 1.1 KB on ext4 and two processors, at a load of 8,
// a verification took 17.8 and 13.7 s with one worker and a cold page cache, 8.6 and 10.8 s with two, 10.4
// and 10.7 s with four, 11.6 and 8.9 s with eight.
//
// Verify keeps in memory the names of one folder, one buffer of the log, and one file for each worker. A
// sample is the share of the files and of the archive that the hashes of their names select; config,
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
//   - Vectors are compared with the index that records them as complete: the files of vectors and
//     index never change. If the vectors are ahead of the index, or this is unknown, later changes
//     are not checked, and a missing vector is not damage.
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
