// Package segment defines the bytes of the log: frames, and the files that contain them.
//
// # Positions
//
// The log is one unbounded sequence of bytes, divided into segments of equal size. Segment number n
// (from 1) is the file wal/<n as 8 digits>.wal and contains positions n×size … (n+1)×size-1. An LSN
// is the position at which a frame begins, so it gives file and offset, grows with every frame, and
// is never 0. Positions may be skipped: a frame never straddles two segments.
//
// # Frame
//
// A frame is a header of 64 bytes and a payload, padded with zeros to a multiple
// of 8 bytes. Numbers are little-endian.
//
//	 0  uint32  length     bytes of payload, without padding
//	 4  uint32  inflated   bytes of the payload after decompressing all of it
//	 8  uint8   kind       1 start of a segment; others belong to the writer
//	 9  uint8   flags      1 more: the batch continues in the next frame
//	                       2 delete: the key is absent after this frame
//	                       4 fields: they are between key and value, see below
//	10  uint16  key        bytes of the key, with which the payload begins
//	12  uint32  nonce      random, one for each append
//	16  uint64  LSN        the frame's own position
//	24  uint64  durable    everything before this was durable, as the writer knew; at most LSN
//	32  int64   time       of the commit, microseconds since 1970, strictly increasing
//	40  uint64  payload    xxhash64 of the payload
//	48  uint64  previous   checksum of the frame before this one
//	56  uint64  checksum   xxhash64 of store UUID, segment number and bytes 0…55
//
// The checksum is seeded with the UUID and the number of the segment, so a frame that a recycled
// file still has from its earlier use, or a frame of another store, does not verify. A frame whose
// field previous is not the checksum of the frame before it is not in the log. This rule excludes the
// frames that a killed writer left, even if they happen to be at the right positions: because of the
// nonce, two appends of the same entry at the same position write different frames.
//
// # Fields
//
// A frame with the flag fields has, between key and value, metadata that the log keeps about the
// entry:
//
//	0  uint16  bytes of all fields together
//	   for each field: uint8 number, uint8 bytes n, n bytes
//
//	number 1, 8 bytes: int64, the reading: time of the writer's clock at the commit,
//	                   microseconds since 1970
//	number 2, 4 bytes: uint32, the writer: a number that an earlier entry explains
//	number 3, 1 byte:  uint8, the cause: why the store wrote an entry that no caller asked for
//	number 4, 8 bytes: uint64, the version that the entry of an undo restores, or the deletion that it
//	                   repeats; a number that is not below the frame's own position is ignored
//
// A field whose value is 0 is omitted. The package that encodes the entries defines how an entry
// explains a writer's number; package wal defines the causes. A reader skips a field whose number
// or length is unknown to it, so a later version may add fields. The reading is stored only if it
// differs from the time in the header; package wal describes when that happens. A reading later
// than that time, or before the year 1, is ignored. Programs older than the fields would read them
// as part of the value, so a log has fields only if the feature wal.FeatureFields is set.
//
// The reading cannot be in the header, whose format is fixed, nor in the value, which is encoded
// before the log has chosen the time of the frame.
//
// # Erased frames
//
// A frame whose payload was erased (for a user's right to be forgotten) keeps its header, so that
// the chain of checksums remains valid; its payload is replaced by the 8 bytes of checksum XOR
// "EVERASED", repeated. Key and value are gone; what remains is the time of the write, the length
// and the xxhash64 of the payload. Readers skip erased frames. Erased frames occur only in copies
// in the archive, and in segments that were restored from such copies.
//
// # Gaps
//
// A repair keeps the sound frames around a hole in a damaged segment: in the archive's copy of the
// segment each sound frame is at its position, and frames of kind 3 replace the lost bytes. The
// payload of such a frame fills the space up to the next frame:
//
//	0  uint64  continue   the value in the field previous of the next frame; 0: the checksum of this frame
//	8  zeros
//
// So a gap reaches from the frame's position to its end, the chain of checksums links it to the
// frames before and after it, and a copy with gaps is read like any other. A gap of more than 16
// KiB consists of several frames. The shortest gap has 72 bytes: if fewer bytes were lost after a
// damaged start of a segment, the next frame is sacrificed to make the gap long enough. A program
// that does not know kind 3 ignores the frame and finds that the next frame does not follow the
// chain: it reports damaged history there and continues with the next segment.
//
// A header of zeros marks the end of the frames in a segment. Every append writes a header of zeros
// after its last frame, in the same write.
//
// # Start of a segment
//
// The first frame of a segment has kind 1, no key, and this uncompressed payload, so that a file
// can be read without any other file:
//
//	 0  8 bytes "VARVELOG"
//	 8  uint32  format version, 1
//	12  uint32  0
//	16  16 bytes UUID of the store
//	32  uint64  size of every segment
//	40  uint64  number of this one
//	48  uint64  end of the predecessor, segment number-1: the position after its last frame
//	56  uint64  checksum of the predecessor's last frame
//
// In the first segment of a log the last two numbers are 0. A segment size is a multiple of 4096 from
// MinSize to MaxSize; a segment number is at most MaxNumber.
//
// # Invariants
//
// No checksum is keyed: anyone able to write a file can compute all of them. So every number is
// checked against its bounds, even when its checksum matches.
//
// A length is used only after its header has verified. Neither writing nor reading allocates more
// than Limit.
package segment
