package sender

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Binding is the record that a sender keeps about its remote: what it has sent to the remote, and what is due there.
type Binding struct {
	Format  int       `json:"format"`
	Store   uuid.UUID `json:"store"`
	Remote  uuid.UUID `json:"remote"`
	Machine uuid.UUID `json:"machine"` // random, of this folder on this machine
	Epoch   uint64    `json:"epoch"`   // epoch that this sender has begun, 0: none yet
	Log     uint64    `json:"log"`     // epoch of the store's log that is sent in Epoch
	Request uuid.UUID `json:"request"` // of the Begin whose answer is not recorded; zero: none
	// Recipients is Options.Recipients as it was when Epoch was begun.
	Recipients string `json:"recipients,omitempty"`

	// Follows is the newest entry of a copy that its user has decided to supersede. The epoch begins only after that
	// entry: if another machine has sent since, Round returns *OvertakenError. Zero if nothing is superseded.
	Follows Seen `json:"follows,omitzero"`

	// Purged are the purges that the remote does not know yet.
	Purged Gathered `json:"purged,omitzero"`

	Snapshot Due `json:"snapshot"` // when the next snapshot is due, and where the last one was begun
}

// Tag returns the number that identifies this binding in wal/sent. Its upper 16 bits are made from the ID of the
// remote, and its lower 16 bits from the ID of the machine, so two users who have bound a store to the same remote have
// different tags.
func (b *Binding) Tag() uint32 { return half(b.Remote)<<16 | half(b.Machine) }

// half returns the first 2 bytes of the SHA-256 of an ID, as a little-endian number; 1 if they are 0.
func half(id uuid.UUID) uint32 {
	sum := sha256.Sum256(id[:])
	return max(1, uint32(binary.LittleEndian.Uint16(sum[:])))
}

// Owns reports whether a tag in wal/sent is that of this binding. It also accepts the tag that an earlier program has
// written for the remote.
func (b *Binding) Owns(tag uint32) bool { return tag == b.Tag() || tag == earlierTag(b.Remote) }

// TagIsOf reports whether a tag in wal/sent is that of a binding to the remote r, on any machine.
func TagIsOf(tag uint32, r uuid.UUID) bool { return tag>>16 == half(r) || tag == earlierTag(r) }

// earlierTag returns the tag that earlier programs have written: the first 4 bytes of the SHA-256 of the remote's ID,
// as a little-endian number; 1 if they are 0.
func earlierTag(r uuid.UUID) uint32 {
	sum := sha256.Sum256(r[:])
	return max(1, binary.LittleEndian.Uint32(sum[:]))
}

// current returns the epoch of the store's log that is sent now. It is higher than b.Log, the epoch of the log when
// the epoch of the remote was begun, if the log has continued in a new epoch after a purge.
func (b *Binding) current() uint64 { return max(b.Log, b.Purged.Log) }

// Gathered describes the purges of the store that are not carried out at the remote yet. They wait, so that one new
// epoch of the remote removes the data of several purges.
type Gathered struct {
	Log   uint64    `json:"log"`   // epoch of the store's log that the newest purge has begun; 0: no purge waits
	Since time.Time `json:"since"` // when the sender noticed the first of them
}

// Due records what is due at the remote: a snapshot, or the removal of purged data.
type Due struct {
	// a snapshot must be saved, no matter how much has passed since the last one
	Now bool `json:"now,omitempty"`
	// a purge requires that all earlier data is removed; unless Now is set, the snapshot for that is saved already
	Erase bool `json:"erase,omitempty"`
	// with Erase: snapshots that end at or before this position have no purged data; 0: no such position is known
	Clean segment.LSN `json:"clean,omitempty"`
	At    segment.LSN `json:"at,omitempty"` // position at which the last snapshot was begun
	Time  time.Time   `json:"time"`         // time at which the last snapshot was begun
}

// Seen identifies the entry that was the newest one of a remote when it was read.
type Seen struct {
	Number uint64    `json:"number"`
	Epoch  uint64    `json:"epoch,omitempty"`
	At     past.Mark `json:"at,omitzero"` // zero: the entry is damaged, and only its number is known
}

// identifies reports whether head, the newest entry of the remote, is still the entry that s identifies.
func (s Seen) identifies(head *remote.Position) bool {
	return s.Number == head.Number && (s.At.LSN == 0 || s.At == head.At && s.Epoch == head.Epoch)
}

// bindingFormat is the version of the format in which File stores a Binding.
const bindingFormat = 1

// Keeper stores the Binding of a sender. When Save returns nil, the Binding must be durable. If Save returns an error,
// the Binding may or may not have been stored.
type Keeper interface {
	// Load returns the binding; the error matches errs.ErrNotFound if no binding was saved.
	Load(ctx context.Context) (Binding, error)
	Save(ctx context.Context, b Binding) error
}

// File is a Keeper that stores the Binding in a file outside of the store.
type File struct {
	FS   vfs.FS
	Path string
}

// Load reads the Binding from the file.
func (f *File) Load(context.Context) (b Binding, err error) {
	text, err := vfs.ReadFile(f.FS, f.Path, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("%s: %w", f.Path, errs.ErrNotFound)
	}
	if err != nil {
		return b, fmt.Errorf("reading %s: %w", f.Path, err)
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return Binding{}, &errs.CorruptionError{Path: f.Path, Offset: -1, Err: err}
	}
	switch {
	case b.Format > bindingFormat:
		return Binding{}, &errs.NewerError{Path: f.Path, Format: uint64(b.Format), Reads: bindingFormat}
	case b.Format < 1, b.Store == uuid.Nil, b.Remote == uuid.Nil, b.Machine == uuid.Nil:
		return Binding{}, &errs.CorruptionError{Path: f.Path, Offset: -1,
			Err: errors.New("store, remote or machine is missing")}
	}
	return b, nil
}

// Save replaces the file by one that has the Binding b.
func (f *File) Save(_ context.Context, b Binding) error {
	b.Format = bindingFormat
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := vfs.MkdirAll(f.FS, filepath.Dir(f.Path), 0o700); err != nil {
		return vfs.Failed("creating", filepath.Dir(f.Path), err)
	}
	temp := strings.TrimSuffix(f.Path, ".json") + fmt.Sprintf(".%d.new", f.FS.Host().PID)
	return vfs.Failed("writing", f.Path, vfs.WriteDurable(f.FS, temp, f.Path, append(text, '\n'), 0o600))
}
