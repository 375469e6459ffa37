// Package repair looks after what has gone wrong in a store's folder.
//
// # Verify
//
// Verify reads and compares; it changes nothing, takes no lock, and runs beside
// hosts that read and write. In this order:
//
//	config.json      is it valid
//	checkpoint       both slots, and whether its marks name frames of the log
//	index            base and delta: blocks, order, lines, counts, sections
//	wal/             each segment from the oldest: frames verify and link up to
//	                 durable; no segment is missing between them; nothing foreign
//	                 lies there; each entry is a record whose document has the hash
//	                 that its line says; index and overlay know it
//	wal/archive/     the checksum of each block; what it holds reaches to where
//	                 the next segment says that it ended
//	backups/         the same for each
//	memories/        each memory's file: there, size, time, sha256, parses, its own
//	                 id, in the place of that id; each file: has an entry
//	tmp, quarantine  leftovers, and how much was set aside
//
// Memory: the names of one folder, one buffer of the log, and one file for each
// worker. Config, checkpoint, log and index are read whole also for a sample.
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
//   - An absent file is right where that chain has a deletion or begins.
//   - After an unclean end what stands above flushed may be anything until the
//     first flush has written it again: it is not judged before.
//   - Frames below durable never change, until their segment is recycled. That
//     begins with zeros at its start, and only below spilled: a segment that has
//     these there is not judged. Segments go in rising order, so one that is
//     missing while an older one is there was not recycled.
//   - A base or a delta never changes; the pair is loaded as a reader does it.
//   - Checkpoint slots and unbegun segments are written in place: what looks
//     wrong is looked at again.
//
// Whatever does not match is looked at several times, after catching up with the
// log, and is reported only if it persists.
package repair
