// Package sealed encrypts a copy of a store's log, so that the place that keeps it cannot read it, and signs it, so
// that the place cannot change it. A Remote of this package wraps another one: it seals what is added, and verifies and
// opens what is read.
//
// # Who can do what
//
// The machine that writes has the public keys of the recipients, its own signing key and the chain key. It can add to
// the copy, and cannot open what it has sent. A user who restores has the identity of a recipient, and the public key
// of the machine. The place has none of these keys.
//
// Recipients are public: the keeper of the place could encrypt something else to them. So nothing is opened
// before its signature was verified with a key that the reader was given by another way than the place.
//
// # What the place sees
//
// The number, sizes and times of pieces and snapshots; positions in the log; the UUID of the store, the size of its
// segments, the epochs; the IDs of machines and their public keys. It does not see texts, names, metadata, the chain
// hashes of the log or the names of machines.
//
// # Format
//
// Entries and snapshots have the format remote.SealedFormat. The bytes of a piece, and the body of a snapshot, are
// encrypted bytes, as Options.Seal makes them, followed by a statement. Numbers are little endian.
//
//	  0  8  "varvesl\n"
//	  8  4  version of the format, 1
//	 12  4  kind: 1 a piece, 2 a snapshot
//	 16 16  UUID of the store
//	 32  8  size of a segment
//	 40  8  epoch of the copy
//	 48  8  epoch of the store's own log; of a piece 0
//	 56 16  mark From or Begin: position, masked chain hash
//	 72 16  mark To or End
//	 88 16  ID of the snapshot; of a piece 0
//	104  8  time in microseconds of Unix time
//	112  8  number of encrypted bytes
//	120 32  SHA-256 of the encrypted bytes
//	152 32  SHA-256 of "varve chain key\n" and the chain key
//	184 32  Ed25519 public key of the machine
//	216 64  its signature of bytes 0 to 215
//
// The plain bytes of a piece are its frames. Those of a snapshot are a header, then its body:
//
//	 0  8  "varvekey"
//	 8  4  length of the JSON text, at most 64 KiB
//	12     {"chain": 32 bytes in base64, "recipients": ["age1…", …]}
//
// So a clone knows the chain key and the recipients, and can take the copy.
//
// # Masks
//
// The chain hash of a mark is a checksum of a frame, and so of what was written: a reader of the place who guesses the
// text could confirm the guess. Outside of the encrypted bytes it is masked by a permutation of 64 bits: a Feistel
// network of ten rounds over AES-256, with the chain key and the position. Equal marks stay equal, so the place can
// compare masked marks. Names of machines are encrypted with AES-256-GCM and a key that is derived from the chain key.
//
// # Invariants
//
// A sealed piece is kept until the place has answered Append, so that a repeated Append sends the same bytes: sealing a
// piece twice gives different bytes. Nothing that is not sealed is added, and nothing that is not sealed is read.
//
// # Assumptions
//
// A place can always lose or withhold what it has. It can also show an older end of the copy: a user who knows a
// position that the copy has reached compares this position with Head.
package sealed
