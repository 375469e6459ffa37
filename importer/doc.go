// Package importer reads what other systems wrote and yields it memory by
// memory. It knows nothing of a store, nor of a terminal: the caller puts the
// items where it wants them and shows the problems as it likes.
//
//	src, err := importer.Open(dir, format, importer.Options{})
//	defer src.Close()
//	for e, err := range src.All(ctx) {
//		switch {
//		case err != nil:          // the source can be read no further
//		case e.Problem != nil:    // something a person should hear of; the rest goes on
//		default:                  // e.Item: one JSON object for memstore.Decode
//		}
//	}
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
//	X.bak, X.json.bak               a copy of X.json, read only if X.json gives nothing
//	faiss_index.bin.mapping.json    {id:int64}: looked through for ids that exist nowhere
//	id_to_index_mapping.json        (ghosts); the vectors themselves are in the memories
//	id_to_index.json
//	assemblies/, asm_*.json         reported, not imported yet
//	backups/ corrupted_backups/ ltm/   looked through: see Options.SetAside
//	logs/ stats/                    reported, left
//
// Vizor: one file a session, its name the session's when the file does not say.
//
//	{"session_id":…,"memories":{category:{key:{"value","timestamp","category"[,"metadata"]}}}}
//
// JSONL: one memory a line, also what memctl export writes.
//
// # What holds
//
//   - The source is never written to, and never left: it is opened read-only
//     and through os.Root, so that neither an index entry "../../etc/passwd" nor a link leads out.
//   - The folder is the truth, the index a hint: an index that says 0, is cut
//     short or is missing costs no memory.
//   - Every file is either an item, or the subject of a problem, or both;
//     nothing is dropped in silence. Known derived files (index, mappings,
//     FAISS) are the exception. Where a file can be read only after mending
//     (NaN, a lone surrogate, a name that stands twice, a byte order mark) the
//     mend is a problem with Taken set.
//   - An id is yielded once. The id inside the file is the truth; a file whose
//     name says otherwise waits until all well-named ones are read. Of two
//     different files with one id the second is reported and not taken.
//   - The order is that of the names, so that two runs give the same, and ids
//     that are made up are made from the content: a second run adds only what is new.
//   - Numbers are passed as they are written: integers beyond 2^53 stay integers.
//   - Held in memory: names, ids, the index's paths, and one document.
//
// Naive times of Synthians and JSONL are passed as they are written, because
// memstore reads them; those of Vizor become UTC by Options.Location.
package importer
