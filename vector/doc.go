// Package vector finds what is near: the vectors of memories and assemblies in
// files that FAISS reads, the mapping from ids to rows, and exact search.
//
// # The FAISS file
//
// An IndexFlatIP or IndexFlatL2 inside an IndexIDMap2, as FAISS 1.7.3 writes it,
// byte for byte. Little-endian, no padding; d dimensions, n rows:
//
//	     0  4 bytes     IxM2 (IDMap2; IxMp, IDMap, is read too: same bytes)
//	     4  int32       d
//	     8  int64       n
//	    16  int64 ×2    1048576, which FAISS ignores
//	    32  uint8       1: trained
//	    33  int32       metric: 0 inner product, 1 squared distance
//	    37  4 bytes     IxFI (inner product) or IxF2 (squared distance)
//	    41  int32       d
//	    45  int64       n
//	    53  int64 ×2    1048576
//	    69  uint8       1
//	    70  int32       metric
//	    74  uint64      n·d
//	    82  float32     n·d of them, row by row
//	82+4nd  uint64      n
//	90+4nd  int64       n ids
//
// 90 + n(4d+8) bytes, and not one more. FAISS opens a file whose list of ids has
// another length, or names an id twice; this package refuses both.
//
// For the inner product the rows have length 1, so that it is the cosine; for the
// squared distance they are as given. A zero vector has a row and never matches.
//
// # The pair
//
//	vector_index/memory_vectors.faiss        vector_index/mapping.json         base
//	vector_index/memory_vectors.delta.faiss  vector_index/mapping.delta.json   the changes since
//
// A mapping is a table of package index/table:
//
//	section     key                   value
//	ids         the memory's id       the number of its vector, an int64 in decimal
//	assemblies  the assembly's id     likewise
//
// and 0 in a delta hides a line of the base. Line i of the lines that are not
// dead, ids first, then assemblies, is row i of the FAISS file, and its value is
// id i there. The metadata's extra says what belongs to the mapping:
//
//	"extra":{"chain":"<16 hex digits>",            of the log before lsn
//	  "metric":"ip","dimension":768,"model":"…",   model only when there is one
//	  "faiss":{"size":…,                           bytes
//	    "mtime":…,                                 microseconds since 1970
//	    "blocks":"<16 hex digits each>"}}          xxhash64 of each MiB
//
// # Which file belongs to which mapping
//
// Two files cannot be renamed in one step. So the mapping's rename is the one
// that counts, and the FAISS file is found from it:
//
//  1. both are written to temp files and synced;
//  2. the FAISS file becomes memory_vectors.next.faiss, the folder is synced;
//  3. the mapping takes its place, the folder is synced: the new pair holds;
//  4. next becomes memory_vectors.faiss, the folder is synced.
//
// A reader opens the mapping first, then memory_vectors.faiss, and when that is
// not the mapping's, next. Before 3 the old mapping finds the old file, which
// no process touches before the new mapping is durable. After 3 the new mapping finds
// the new file under either name. A reader that opened the old mapping before 3
// and looks for its file after 4 finds neither, and begins again with the mapping.
// A crash leaves a state between two steps, for each step is synced before the
// next one begins: killed after 2, next belongs to no mapping and is overwritten or
// removed by the next writer; killed after 3, the next writer does step 4 before
// anything else, because its own step 2 would overwrite what the mapping needs.
//
// "Is the mapping's" is judged by size and mtime; where the mtime is another one,
// as in a copied store, by the hashes of the first block and of all that hold
// ids: a vector's number is never used for another vector, so the same numbers
// are the same vectors. Every block is compared with the mapping's hash when it
// is first touched whatever the name and the time say, so a wrong pair cannot
// answer a search; it can only be damage.
//
// The base is in place before the delta goes: first its mapping, so that a delta
// without its mapping counts for nothing; and an old delta does not count over a
// new base by its lsn (see index/table).
//
// # A change of the model
//
// A set as of an LSN at or below that of the change (index.Model.Since) is the model's before,
// whatever its dimension, and is not used by a process that knows of the change: everything is
// rebuilt, in one new base; where nothing has a vector any more the files go. While documents by the model
// before are left, the row of such a document is of what vector_index/reembed has for its content,
// under the document's own number; see the root package's model.go and reembed_file.go.
//
// # Search
//
// Exact: every row is compared. The files lie in the mapping of the operating
// system; a View adds, in the heap, what came since, and which rows it hides. One
// block after the other is checked when it is first touched, compared by the
// kernel of this machine, and what is good enough goes into a heap of k. Workers
// share the blocks. Equal scores are in the order of the ids.
//
// The kernels are Go assembly for amd64 (AVX2 with FMA) and arm64 (NEON), plain
// Go elsewhere and under the build tag purego. They differ from an exact sum by
// at most (d/4+8)·2⁻²⁴ of the sum of the absolute products (TestKernels).
//
// # Assumptions
//
// One writer at a time (flush.lock). A file that has its final name is never
// changed in place; one that is cut short is an error, not a fault (vfs.Guard).
package vector
