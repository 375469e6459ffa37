// Package importer reads what other systems wrote and yields it memory by
// memory, and the assemblies behind them. It knows nothing of a store, nor of a
// terminal: the caller puts the items where it wants them and shows the problems
// as it likes.
//
//	src, err := importer.Open(dir, format, importer.Options{})
//	defer src.Close()
//	for e, err := range src.All(ctx) {
//		switch {
//		case err != nil:          // the source can be read no further
//		case e.Problem != nil:    // something to report to the user; the rest follows
//		case e.Item.Assembly:     // one JSON object for assembly.Decode
//		default:                  // one for memstore.Decode
//		}
//	}
//	report := src.Report()    // what became of every member and every other file
//
// # Formats
//
// Synthians: a folder of memory files beside an index.
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
//	                                nothing is taken by it where it could be either
//	id_to_index.json                {id:int64}: the one or the other, likewise
//	mapping[.delta].json            {"ids":{…},"assemblies":{…},…}: ours, see package vector
//	faiss_index*.bin, *.faiss       IndexFlatIP or IndexFlatL2 in an IndexIDMap or IndexIDMap2: the
//	                                vectors, see below. All of these here or in vector_index/
//	backups/ corrupted_backups/ ltm/   looked through: see Options.SetAside
//	logs/merge_log*.jsonl           one event a line, see readMerges: into merged_from
//	stats/assembly_activation_stats.json   {id:int}: into activation_count, where it is larger
//	logs/ stats/ otherwise          reported, left
//
// Vizor: one file a session, its name the session's when the file does not say.
//
//	{"session_id":…,"memories":{category:{key:{"value","timestamp","category"[,"metadata"]}}}}
//
// JSONL: one memory or assembly a line, also what memctl export writes.
//
// ServerMemory: the file of the MCP reference memory server, an entity or a relation a
// line; package internal/graph has the lines and what becomes of them.
//
// # Vectors
//
// The document counts. One without an embedding gets that of its row in the vector
// file, as the file has it (KindVector): of length 1 from an IndexFlatIP, as it was
// given to an IndexFlatL2. A row that is neither the embedding nor that of length 1
// is stale (KindStale). An id that a mapping names and no document has is a ghost, and so
// is a row without an owner. The owner of a row is the id of which its number is the md5, else the
// id that the first mapping with the number names; a row with two claims belongs to neither id.
// Where documents have embeddings, but none of the file's dimension, nothing is taken from it. A file
// that is damaged, or another sort of index, is reported (KindVectors) and not used.
//
// # What holds
//
//   - The source is never written to, and never left: it is opened read-only
//     and through os.Root, so that neither an index entry "../../etc/passwd" nor a link leads out.
//   - The folder is the truth, the index a hint: an index that says 0, is cut
//     short or is missing costs no memory.
//   - Every file is an item, or the subject of a problem, or in the Report;
//     nothing is dropped in silence. Where a file can be read only after mending
//     (NaN, a lone surrogate, a name that stands twice, a byte order mark) the
//     mend is a problem with Taken set.
//   - An id is yielded once, memories and assemblies apart. The id inside the
//     file is the truth; a file whose name says otherwise waits until all
//     well-named ones are read. Of two different files with one id the second is
//     reported and not taken.
//   - Of a folder assemblies come behind all memories, so that their members can
//     be there; of lines they come as they stand. Members that the source has not
//     stay named, and are reported.
//   - The copies of whole memories inside assemblies are stale and not taken,
//     unless the memory is nowhere else and Options.SetAside says so.
//   - A merge that its system did not finish leaves its sources: they are taken,
//     and reported. Nothing is merged or deleted here.
//   - The order is that of the names, and where there is a vector file those without
//     an embedding come behind those that have one; so two runs give the same. Ids
//     that are made up are made from the content: a second run adds only what is new.
//   - Numbers are passed as they are written: integers beyond 2^53 stay integers.
//     The number of a vector is passed on (Item.VectorID) if it is an integer above 0
//     and no other id has it.
//   - Held in memory: names, ids, numbers, the index's paths, the merge log, 25 bytes
//     for each row of a vector file, and one document.
//
// Naive times of Synthians and JSONL are passed as they are written, because
// memstore and assembly read them; those of Vizor become UTC by Options.Location.
package importer
