// Package s3 keeps a copy of a store's log in a bucket of an object store that speaks the S3 protocol. Remote
// implements remote.Remote.
//
// # The objects
//
// All names begin with the prefix of the remote.
//
//	head                     decides; replaced with If-Match, by every change
//	data/<random>            bytes of one or more pieces, never changed
//	lists/<random>           descriptions of older entries, never changed
//	snapshots/<id>/<number>  bytes of a snapshot, 16 MiB each, numbered from 0 by 8 digits
//	snapshots/<id>.meta      its description; the snapshot exists if it has this object
//	machines/<id>            the machines that use the remote
//
// An object other than those with bytes of pieces and snapshots is
//
//	 0  8 bytes that name the kind: "VARVEHED", "VARVELST", "VARVESNP", "VARVEMCH"
//	 8  uint32 version 1, uint32 number of bytes of the next field, little-endian
//	16  a JSON object (types document, list, description, remote.Machine), compressed with zstd
//	    bytes of pieces; of the head only
//	    32 bytes SHA-256 of everything before
//
// The head has the newest entries, at most 128, and the bytes of the newest pieces, up to 256 KiB. When there are more
// bytes, all of them become one object below data/. When there are more entries, the older ones become an object below
// lists/, and the head has its name, its SHA-256 and the range of its numbers. 64 lists become one list of lists, so
// the head stays small however many entries there are.
//
// # Who decides
//
// Every change replaces the head with If-Match and the ETag of the head that it was computed from, so of all writers
// that have read one head exactly one succeeds. Each head has a random number of its own: no two heads have the same
// bytes, so no ETag returns, and a writer that slept through any number of changes is refused.
//
// A writer stores the objects that its head will name before the head itself, under new random names. If it is refused
// it begins again with other names, because a sweep may have removed the objects meanwhile: a sweep first lists the
// names below data/ and lists/, then replaces the head, which refuses every writer whose objects it has listed, and
// then removes the listed objects that the new head does not name. There is no object whose name tells a position: it
// would be free again after it was pruned, and a sleeping writer could create it.
//
// A reader that meets a missing object reads the head again. If the head is still the same the object is lost, which is
// an error; otherwise the reader continues with the new head.
//
// Objects with a condition are stored by one request each: at the completion of an upload in several parts object
// stores do not compare the condition, or compare it at another time.
//
// # A suitable object store
//
// Create refuses an object store that ignores conditions, or compares them when a request begins: its test holds two
// requests open at half of their bodies, and exactly one may succeed (probe.go). A test of one request after another
// would accept those that look up the name first and store the object after.
//
// # Assumptions
//
// A read returns the newest object whose write was answered, from every machine, and a listing has every object whose
// write was answered before (Amazon S3, Cloudflare R2, MinIO, Ceph and Google Cloud Storage promise both). What was
// answered is durable. Where the bucket keeps versions or forbids deletion, what is pruned stays in it: Varve removes
// the current version only.
package s3
