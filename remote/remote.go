package remote

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Format is the version of the format of the pieces and snapshots that this program sends. It is also the highest
// version that this program reads.
const Format = 1

// SealedFormat is the format of pieces and snapshots that are encrypted: see package remote/sealed.
const SealedFormat = 2

// Remote is a copy of a store's log in another place. All methods may be called concurrently. The package comment has
// what an implementation must guarantee.
type Remote interface {
	// ID identifies the place itself, whatever its address is: a disk that is mounted in place of another has another
	// ID.
	ID() uuid.UUID
	// Place returns the address, for messages, without credentials.
	Place() string

	// Head returns the newest entry; its Number is 0 if the remote has none.
	Head(ctx context.Context) (Position, error)
	// Begin begins an epoch after the entry a.Follows and returns the number of the epoch. If the newest entry is
	// another one the error is *MovedError; if the remote is that of another store, *OtherStoreError. Repeating a call
	// with the same Request, as the newest entry, returns the same epoch.
	Begin(ctx context.Context, a *Anchor) (epoch uint64, err error)
	// Append appends a piece. If the string of the newest epoch does not end with p.From, or p.Epoch is not the newest
	// epoch, the error is *MovedError.
	Append(ctx context.Context, p *Piece) error
	// Read returns the pieces of an epoch, beginning with the piece that contains the position from, or with the
	// first one after it if from is where an entry ends. If pieces from there on are no longer kept, or never were,
	// the error is a *TruncatedError. A *errs.CorruptionError takes the place of a damaged piece, and the next
	// iteration returns what follows it; every other error ends the reading. The bytes of a piece are valid until the
	// next iteration.
	Read(ctx context.Context, epoch uint64, from segment.LSN) iter.Seq2[Piece, error]
	// Epochs returns the epochs of which entries are kept, oldest first.
	Epochs(ctx context.Context) ([]Epoch, error)
	// Wait blocks until the number of the newest entry is greater than beyond, or ctx ends.
	Wait(ctx context.Context, beyond uint64) error

	// Save stores a snapshot with the bytes of body, whose Size and SHA256 it sets. body may set End and Time until
	// it has returned io.EOF. An error of body (only io.EOF itself is its end: see Fill), and bytes that differ when
	// they are read back, are errors; then no snapshot is listed.
	Save(ctx context.Context, s *Snapshot, body io.Reader) error
	// Snapshots returns the complete snapshots, oldest first. If one of them is damaged, it returns the others together
	// with a *errs.CorruptionError.
	Snapshots(ctx context.Context) ([]Snapshot, error)
	// Open opens the bytes of a snapshot. If there is no such snapshot the error matches errs.ErrNotFound.
	Open(ctx context.Context, id uuid.UUID) (Body, error)
	// Drop removes a snapshot. A missing snapshot is not an error.
	Drop(ctx context.Context, id uuid.UUID) error

	// Prune removes the oldest entries: all pieces of epochs before epoch, and the pieces of epoch itself that end at
	// or before the position pos. The newest entry always stays. Prune returns the number of removed entries.
	Prune(ctx context.Context, epoch uint64, pos segment.LSN) (removed int, err error)

	// Register records that a machine uses the remote. The record is for users; the program does not use it.
	Register(ctx context.Context, m Machine) error
	// Machines returns the recorded machines, ordered by ID.
	Machines(ctx context.Context) ([]Machine, error)

	Close() error
}

// Piece is a part of the copied log: whole batches of one segment, as raw bytes.
type Piece struct {
	From  past.Mark // mark at which the earlier pieces end
	To    past.Mark // mark at which this piece ends
	Epoch uint64
	// Machine and Request are for users and for the caller; a Remote does not use them.
	Machine, Request uuid.UUID
	Format           uint32    // lowest program format that can read the piece
	Time             time.Time // clock of the sender when it sent the piece
	Bytes            []byte    // the frames, with their padding
}

// Anchor describes the entry with which an epoch begins.
type Anchor struct {
	Follows          uint64           // Number of the newest entry that the caller knows, 0 for an empty remote
	Geometry         segment.Geometry // the UUID of the store, and the size of its segments
	Log              uint64           // epoch of the store's own log: past.ID
	At               past.Mark        // mark at which the pieces of the epoch begin
	Machine, Request uuid.UUID
	Format           uint32
	Time             time.Time
}

// Position describes the newest entry of a remote.
type Position struct {
	Number           uint64           // number of the entry; every entry has a higher one than those before; 0: none
	Geometry         segment.Geometry // the store
	Log              uint64           // epoch of the store's own log
	Epoch            uint64
	At               past.Mark // mark at which the pieces of the epoch end
	Machine, Request uuid.UUID // machine that sent the newest entry
	Format           uint32
	Time             time.Time // clock of the sender when it sent the newest entry
}

// Epoch describes the part of an epoch that the remote still has.
type Epoch struct {
	Number   uint64
	Geometry segment.Geometry
	Log      uint64
	From, To past.Mark // marks between which pieces are kept
	Entries  uint64
	Began    time.Time // time of the oldest entry that is kept
	Ended    time.Time // time of the newest entry
}

// Snapshot describes a snapshot. The caller of Save sets all fields except Size and SHA256.
type Snapshot struct {
	ID       uuid.UUID
	Geometry segment.Geometry
	Log      uint64    // epoch of the store's own log
	Epoch    uint64    // epoch whose pieces complete the snapshot; if it is not kept: see CompletedBy
	Begin    past.Mark // mark from which pieces are needed
	End      past.Mark // no moment before this can be restored from the snapshot
	Machine  uuid.UUID
	Format   uint32
	Time     time.Time // clock of the sender at the End
	Size     int64
	SHA256   [32]byte
}

// CompletedBy returns the number of the epoch whose pieces complete a snapshot. This is the epoch s.Epoch, if the
// remote still has it. Otherwise it is the oldest epoch that the remote has, unless that epoch begins after s.Begin:
// the oldest epoch was then begun after a purge, and has the pieces of the earlier epoch with the purged data erased.
// CompletedBy does not verify this. It also does not verify that the oldest epoch belongs to the same log: the caller
// must compare the marks of the snapshot. epochs are the epochs of the remote, the oldest first.
func (s *Snapshot) CompletedBy(epochs []Epoch) uint64 {
	if len(epochs) > 0 && s.Epoch < epochs[0].Number && s.Begin.LSN >= epochs[0].From.LSN {
		return epochs[0].Number
	}
	return s.Epoch
}

// Body has the bytes of a snapshot.
type Body interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Machine describes a machine that uses the remote.
type Machine struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"` // host name
	Seen time.Time `json:"seen"` // clock of the machine when it was registered
}

// BeforeDamage describes the readable part of a remote whose newest entry is damaged. number is the number of that
// entry; the result has it as its Number. The epoch of the result is the newest one that Epochs returns, and At is the
// mark at which the readable pieces of this epoch end. The result is zero if no entry can be read.
func BeforeDamage(ctx context.Context, r Remote, number uint64) (head Position, err error) {
	list, err := r.Epochs(ctx)
	if len(list) > 0 {
		last := &list[len(list)-1]
		head = Position{Number: number, Epoch: last.Number, Geometry: last.Geometry, Log: last.Log, At: last.To}
	}
	return head, err
}

// FormatOf returns the highest format among the snapshots of a remote and the first readable piece of each epoch; 0 if
// none can be read.
func FormatOf(ctx context.Context, r Remote) (format uint32, err error) {
	list, err := r.Snapshots(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return 0, err
	}
	for _, s := range list {
		format = max(format, s.Format)
	}
	epochs, err := r.Epochs(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return 0, err
	}
	for _, e := range epochs {
		for p, err := range r.Read(ctx, e.Number, e.From.LSN) {
			if errors.Is(err, errs.ErrCorrupt) {
				continue
			}
			if errors.Is(err, errs.ErrTruncated) {
				break
			}
			if err != nil {
				return 0, err
			}
			format = max(format, p.Format)
			break
		}
	}
	return format, nil
}
