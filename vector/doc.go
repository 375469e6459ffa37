// Package vector implements nearest-neighbour search: the vectors of memories and assemblies in files that FAISS can
// read, the mapping from ids to rows, and exact search.
//
// # The FAISS file
//
// An IndexFlatIP or IndexFlatL2 inside an IndexIDMap2, byte for byte as FAISS 1.7.3 writes it. Little-endian, no
// padding; d dimensions, n rows:
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
// The file has exactly 90 + n(4d+8) bytes. FAISS accepts a file whose list of ids has another length, or in which an id
// occurs twice; this package refuses both.
//
// For the inner product the rows have length 1, so that the product is the cosine; for the squared
// distance rows are stored as given. A zero vector has a row and never matches.
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
// The value 0 in a delta hides a line of the base. Line i of the lines that are not dead, ids
// first, then assemblies, is row i of the FAISS file, and its value is id i there. The metadata's
// extra describes the FAISS file that belongs to the mapping:
//
//	"extra":{"chain":"<16 hex digits>",            of the log before lsn
//	  "metric":"ip","dimension":768,"model":"…",   model only when there is one
//	  "faiss":{"size":…,                           bytes
//	    "mtime":…,                                 microseconds since 1970
//	    "blocks":"<16 hex digits each>"}}          xxhash64 of each MiB
//
// # Which file belongs to which mapping
//
// Two files cannot be renamed in one step. So the rename of the mapping is the decisive one, and
// the FAISS file is found from the mapping:
//
//  1. both are written to temp files and synced;
//  2. the FAISS file becomes memory_vectors.next.faiss, the folder is synced;
//  3. the mapping is renamed into place, the folder is synced: the new pair is valid;
//  4. next becomes memory_vectors.faiss, the folder is synced.
//
// A reader opens the mapping first, then memory_vectors.faiss, and if that file does not belong to
// the mapping, next. Before step 3 a reader of the old mapping finds the old file, which no process
// changes until the new mapping is durable. After step 3 a reader of the new mapping finds the new
// file under one of the two names. A reader that opened the old mapping before step 3 and opens its
// file after step 4 finds neither, and starts again with the mapping. A crash leaves a state
// between two steps, because each step is synced before the next one begins. If the writer was killed
// between steps 2 and 3, next belongs to no mapping, and the next writer overwrites or removes it. If the
// writer was killed between steps 3 and 4, the next writer does step 4 before anything else, because its
// own step 2 would overwrite the file that the mapping needs.
//
// Whether a file belongs to the mapping is decided by size and mtime; if the mtime differs, as in a
// copied store, by the hashes of the first block and of all blocks with ids: a vector's number is
// never used for another vector, so equal numbers mean equal vectors. Independently of name and
// time, every block is compared with the mapping's hash when it is first read. So a wrong pair
// never answers a search; it is reported as damage.
//
// The base is in place before the delta is removed. Of the delta the mapping is removed first: a
// delta without its mapping is ignored. An old delta is not used over a new base because of its lsn
// (see index/table).
//
// # A change of the model
//
// A set as of an LSN at or below that of the change (index.Model.Since) belongs to the previous model,
// whatever its dimension, and is not used by a process that knows of the change: everything is rebuilt,
// in one new base; if no document has a vector anymore, the files are removed. While some documents
// still have vectors of the previous model, the row of such a document has the vector that
// vector_index/reembed has for its content, under the document's own number; see package
// internal/view/vectors.
//
// # Search
//
// Exact: every row is compared. The files are memory-mapped; a View adds, on the heap, the later
// vectors and which rows these hide. Each block is checked when it is first read, compared by the
// kernel for this machine's processor, and the best results are kept in a heap of k. Workers share
// the blocks. Equal scores are in the order of the ids.
//
// The kernels are Go assembly for amd64 (AVX2 with FMA) and arm64 (NEON), and plain Go for other processors and under
// the build tag purego. They differ from an exact sum by at most (d/4+8)·2⁻²⁴ of the sum of the absolute products
// (TestKernels).
//
// # Assumptions
//
// One writer at a time (flush.lock). A file that has its final name is never changed in place; a
// truncated file leads to an error, not to a fault (vfs.Guard).
package vector
