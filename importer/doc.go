// Package importer reads the data of other systems and yields memory after memory, then the
// assemblies. It depends neither on a store nor on a terminal: the caller decides where to store
// the items and how to show the problems.
//
//	src, err := importer.Open(dir, format, importer.Options{})
//	defer src.Close()
//	for e, err := range src.All(ctx) {
//		switch {
//		case err != nil:          // the source can be read no further
//		case e.Problem != nil:    // something to report to the user; the rest follows
//		case e.Item.Assembly:     // one JSON object for assembly.Decode
//		default:                  // one JSON object for memstore.Decode
//		}
//	}
//	report := src.Report()    // what became of every member and every other file
//
// # Formats
//
// Synthians: a folder of memory files with an index.
//
//	memory_index.json               form A {memories:{id:{filepath,…}},assemblies:{…},metadata}
//	                                form B {id:{path,timestamp,quickrecal,type}}          flat
//	                                form C {memories:{id:{path,timestamp,significance}},last_updated,count,…}
//	                                form D {memories:{id:"path"},assemblies:{…}}
//	*.json, memories/**.json        one memory each; ':' of an id may be '-' in the name
//	assemblies/**.json, *.json      one assembly each: by its folder, by the index, or by assembly_id
//	                                or memory_ids beside no content
//	X.bak, X.json.bak               a copy of X.json, read only if X.json gives nothing
//	faiss_index.bin.mapping.json    {id:int64}, assemblies as asm:<id>: the numbers of the vectors
//	id_to_index_mapping.json        {id:int64}: their rows, if none of these is a number of the file;
//	                                ignored where it could be either
//	id_to_index.json                {id:int64}: numbers or rows, likewise
//	mapping[.delta].json            {"ids":{…},"assemblies":{…},…}: Varve's own, see package vector
//	faiss_index*.bin, *.faiss       IndexFlatIP or IndexFlatL2 in an IndexIDMap or IndexIDMap2: the
//	                                vectors, see below. All of these here or in vector_index/
//	backups/ corrupted_backups/ ltm/   searched: see Options.SetAside
//	logs/merge_log*.jsonl           one event per line, see readMerges: into merged_from
//	stats/assembly_activation_stats.json   {id:int}: into activation_count, where it is larger
//	logs/ stats/ otherwise          reported, not imported
//
// Vizor: one file per session. A file that does not name its session belongs to the session with the name of the file.
//
//	{"session_id":…,"memories":{category:{key:{"value","timestamp","category"[,"metadata"]}}}}
//
// JSONL: one memory or assembly per line, also what memctl export writes.
//
// ServerMemory: the file of the MCP reference memory server, one entity or relation per line;
// package internal/graph describes the lines and how they are stored.
//
// # Vectors
//
// An embedding in the document has precedence. A document without an embedding gets the row of the
// vector file, as the file has it (KindVector): of length 1 from an IndexFlatIP, as given from an
// IndexFlatL2. A row that equals neither the embedding nor the embedding scaled to length 1 is
// stale (KindStale). An id that a mapping names and no document has is a ghost, and so is a row
// without an owner. The owner of a row is the id whose md5 is its number, else the id that the
// first mapping with the number names; a row that two ids claim belongs to neither. If documents
// have embeddings, but none of the file's dimension, the file is not used. A file that is damaged,
// or another kind of index, is reported (KindVectors) and not used.
//
// # Guarantees
//
//   - The source is never written to, and nothing outside it is read: it is opened read-only and
//     through os.Root, so that neither an index entry "../../etc/passwd" nor a link leads out of
//     it.
//   - The folder is authoritative, the index a hint: with an index that says 0, is truncated or is
//     missing, no memory is lost.
//   - Every file is an item, or the subject of a problem, or in the Report; nothing is dropped
//     silently. If a file can be read only after a correction (NaN, a lone surrogate, a duplicate
//     name, a byte order mark) the correction is a problem with Taken set.
//   - An id is yielded once, separately for memories and assemblies. The id inside the file is
//     authoritative; files whose names do not match their ids are read after all others. Of two
//     different files with one id the second is reported and not imported.
//   - From a folder, assemblies are yielded after all memories, so that their members can already
//     be stored; from lines they are yielded in the order of the lines. Members that the source
//     lacks stay in the assembly, and are reported.
//   - Copies of whole memories inside assemblies are stale and not imported, unless the memory is
//     nowhere else and Options.SetAside is set.
//   - A merge that the other system did not finish leaves its source assemblies: they are imported,
//     and reported. Nothing is merged or deleted here.
//   - The order is that of the names; if there is a vector file, documents without an embedding
//     follow those that have one. So two runs yield the same order. Ids that the importer makes are
//     derived from the content: a second run adds only what is new.
//   - Numbers are passed on as written: integers beyond 2^53 stay integers. The number of a vector
//     is passed on (Item.VectorID) if it is an integer above 0 that no other id has.
//   - Held in memory: names, ids, numbers, the index's paths, the merge log, 25 bytes
//     for each row of a vector file, and one document.
//
// Times without a zone of Synthians and JSONL are passed on as written, because memstore and
// assembly read them; those of Vizor are converted to UTC by Options.Location.
package importer
