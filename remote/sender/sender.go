package sender

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// Source is the store whose log is sent.
type Source interface {
	// Past returns the log.
	Past() *past.Log
	// Durable returns a position up to which the log is durable; it never decreases.
	Durable() segment.LSN
	// Base returns the mark from which a snapshot that is begun now needs the log. Snapshots that are begun later need
	// no part of the log before this mark.
	Base(ctx context.Context) (past.Mark, error)
	// Erased returns a position of the log: before this position, the store had none of the data that later purges
	// have erased. Later purges are those that ended after the log position pos. Erased returns 0 if no such position
	// is known.
	Erased(ctx context.Context, pos segment.LSN) (segment.LSN, error)
	// Snapshot begins a snapshot.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Snapshot is a snapshot that is being made; Read returns its bytes.
type Snapshot interface {
	io.ReadCloser
	// Begin returns the mark from which the log completes the snapshot.
	Begin() past.Mark
	// End returns, once Read has returned io.EOF, the mark of the earliest moment that can be restored from the
	// snapshot.
	End() past.Mark
}

// Options are the settings of a sender and the parts of the machine that it uses. Zero fields select the defaults.
type Options struct {
	Every         time.Duration // pause between two rounds; 1 s
	SnapshotBytes uint64        // number of bytes of log after which a snapshot is due; 0 means 1 GiB
	SnapshotEvery time.Duration // time after which a snapshot is due; 0 means 24 h
	Keep          time.Duration // period within which every moment can be restored; 0 means 7 days

	Gather time.Duration // time for which purges wait for others before they reach the remote; 0 means 24 h
	Erase  uint64        // purges up to this epoch of the store's log do not wait

	Clock    func() time.Time
	Sleep    func(ctx context.Context, d time.Duration) error
	Random   io.Reader
	FileMode fs.FileMode // of wal/sent; 0600

	// Recipients identifies the recipients who can read what is sent. When it changes, an epoch begins: its snapshot
	// and pieces are for the new recipients.
	Recipients string
}

func (o *Options) fill() {
	if o.Every == 0 {
		o.Every = time.Second
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = 1 << 30
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = 24 * time.Hour
	}
	if o.Keep == 0 {
		o.Keep = 7 * 24 * time.Hour
	}
	if o.Gather == 0 {
		o.Gather = Gathering
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = vfs.Sleep
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.FileMode == 0 {
		o.FileMode = 0o600
	}
}

// Gathering is the default of Options.Gather: the time for which a purge waits for others before they reach the remote
// together.
const Gathering = 24 * time.Hour

// Sender sends the log of a store to a remote.
type Sender struct {
	remote remote.Remote
	source Source
	keeper Keeper
	o      Options

	round    sync.Mutex // held while a Round runs
	known    past.Mark  // mark of the remote's string that the log is known to have, in epoch Binding.Epoch
	maintain sync.Mutex // held while Maintain runs

	mu      sync.Mutex
	binding Binding
	status  Status
	stopped error
}

// Bind records an empty remote as the copy of a store, which is the first step of a copy. It stores the Binding with k
// and returns it. If the remote has entries, the error is *remote.OtherStoreError or *remote.MovedError.
func Bind(ctx context.Context, r remote.Remote, store uuid.UUID, k Keeper, random io.Reader) (Binding, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return Binding{}, err
	}
	if head.Number > 0 {
		if has := uuid.UUID(head.Geometry.UUID); has != store {
			return Binding{}, &remote.OtherStoreError{Place: r.Place(), Has: has, Want: store}
		}
		return Binding{}, &remote.MovedError{Place: r.Place(), Head: head}
	}
	if random == nil {
		random = rand.Reader
	}
	machine, err := uuid.NewRandomFromReader(random)
	if err != nil {
		return Binding{}, err
	}
	b := Binding{Format: bindingFormat, Store: store, Remote: r.ID(), Machine: machine}
	return b, k.Save(ctx, b)
}

// New returns the sender of a store. Bind must have stored a Binding in k before. If the Binding belongs to another
// store, the error is *remote.OtherStoreError.
func New(ctx context.Context, r remote.Remote, s Source, k Keeper, o Options) (*Sender, error) {
	o.fill()
	b, err := k.Load(ctx)
	if err != nil {
		return nil, err
	}
	if store := uuid.UUID(s.Past().Geometry.UUID); b.Store != store {
		return nil, &remote.OtherStoreError{Place: r.Place(), Has: b.Store, Want: store}
	}
	return &Sender{remote: r, source: s, keeper: k, o: o, binding: b,
		status: Status{Place: r.Place(), Epoch: b.Epoch}}, nil
}

// errAgain is the error of an attempt after which Round must ask the remote for its newest entry again and repeat the
// attempt.
var errAgain = errors.New("the remote has changed meanwhile")

// attempts is the maximum number of times that a round asks for the newest entry again because the answers to its
// requests were lost.
const attempts = 4

// Round sends everything that is durable now. See the package comment for its errors.
func (s *Sender) Round(ctx context.Context) (err error) {
	s.round.Lock()
	defer s.round.Unlock()
	defer func() { s.note(err) }()
	if err := s.stoppedBy(); err != nil {
		return err
	}
	for range attempts {
		if err = s.attempt(ctx); !errors.Is(err, errAgain) {
			break
		}
	}
	if errors.Is(err, ErrStopped) {
		s.mu.Lock()
		s.stopped = err
		s.mu.Unlock()
	}
	return err
}

func (s *Sender) stoppedBy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// bound returns the current Binding.
func (s *Sender) bound() Binding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.binding
}

// rebind changes the Binding by the function change, and makes the change durable.
func (s *Sender) rebind(ctx context.Context, change func(b *Binding)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.binding
	change(&b)
	if err := s.keeper.Save(ctx, b); err != nil {
		return err
	}
	s.binding = b
	s.status.Epoch = b.Epoch
	return nil
}

func (s *Sender) attempt(ctx context.Context) error {
	b := s.bound()
	if has := s.remote.ID(); has != b.Remote {
		return &LostError{Place: s.remote.Place(), Want: b.Remote, Has: has}
	}
	head, err := s.remote.Head(ctx)
	damage := err
	damaged := errors.Is(err, errs.ErrCorrupt) && head.Number > 0
	if err != nil && !damaged {
		return err
	}
	log := s.source.Past()
	id, err := log.ID()
	if err != nil {
		return err
	}
	if damaged {
		if head, err = s.beforeDamage(ctx, head.Number); err != nil {
			return err
		}
		if err := s.ownDamage(b, head, damage); err != nil {
			return err
		}
	}
	if err := s.mayFollow(b, head); err != nil {
		return err
	}
	if err := s.claim(b); err != nil {
		return err
	}
	switch {
	case !damaged && head.Number > 0 && b.Request != uuid.Nil && head.Request == b.Request:
		return s.adopt(ctx, head)
	case b.Epoch > 0 && id.Epoch < b.current(): // the folder was reset to a moment before that epoch of its log
		if err := s.follows(ctx, &b, head); err != nil {
			return err
		}
		return errAgain
	case damaged:
		return s.begin(ctx, head, id, "the newest entry of the copy is damaged")
	case b.Epoch == 0, b.Request != uuid.Nil:
		return s.begin(ctx, head, id, "")
	case b.current() != id.Epoch && !s.purgedOnly(log, b.current()):
		return s.begin(ctx, head, id, s.reason(log, b.Log))
	case b.Recipients != s.o.Recipients:
		return s.begin(ctx, head, id, "the recipients of the copy have changed")
	}
	if b.Log != id.Epoch {
		if b.Purged.Log != id.Epoch {
			if err := s.gather(ctx, id.Epoch); err != nil {
				return err
			}
			b = s.bound()
		}
		if s.purgesDue(&b) {
			return s.begin(ctx, head, id, past.Purged.String())
		}
	}
	durable := s.source.Durable()
	if head.At != s.known {
		if err := s.follows(ctx, &b, head); err != nil {
			return err
		}
		s.known = head.At
	}
	return s.ship(ctx, b, id, head, durable)
}

// claim returns a *ClaimedError if wal/sent has the record of another binding, because the archive can keep the log for
// one binding only. If the user has decided to take the remote (Binding.Follows), and the record is that of another
// binding to the same remote, claim removes the record instead: a process that took the remote was killed before it
// removed the record. No other sender writes that file meanwhile: the caller ensures that one process of the machine
// sends.
func (s *Sender) claim(b Binding) error {
	sent, other := s.otherSent(b)
	switch {
	case !other:
		return nil
	case b.Follows != (Seen{}) && TagIsOf(sent.Copy, b.Remote):
		return s.source.Past().ForgetSent()
	}
	return &ClaimedError{Place: s.remote.Place(), Sent: sent.Mark.LSN}
}

// otherSent returns the record in wal/sent. It returns false if wal/sent does not exist, or if the record is that of
// the binding b.
func (s *Sender) otherSent(b Binding) (past.Sent, bool) {
	sent, ok, _ := s.source.Past().Sent(s.source.Durable()) // the tag is valid even if the log does not continue there
	return sent, ok && sent.Copy != 0 && !b.Owns(sent.Copy)
}

// Forget removes wal/sent, so that the archive no longer keeps log for the copy. It does not remove the record of
// another binding, such as that of another user of the store. The caller ensures that no process of the machine sends
// meanwhile.
func (s *Sender) Forget() error {
	if _, other := s.otherSent(s.bound()); other {
		return nil
	}
	return s.source.Past().ForgetSent()
}

// follows returns nil if the store's log has the mark at which the remote ends (head.At). If the log has another frame
// or nothing there, follows returns a *DivergedError. If the log has continued in a new epoch in the meantime, it
// returns errAgain.
func (s *Sender) follows(ctx context.Context, b *Binding, head remote.Position) error {
	log := s.source.Past()
	err := log.Continues(ctx, past.ID{Store: b.Store, Epoch: b.current()}, head.At)
	if err == nil && head.At.LSN > s.source.Durable() { // the log ends before the copy, so there is nothing to compare
		err = past.ErrBegunAgain
	}
	if !errors.Is(err, past.ErrBegunAgain) {
		return err
	}
	if now, err := log.ID(); err != nil || now.Epoch > b.current() {
		return errors.Join(errAgain, err)
	}
	return &DivergedError{Place: s.remote.Place(), Head: head, Durable: s.source.Durable(), Err: err}
}

// beforeDamage returns the position at which the readable entries of the remote end, if its newest entry is damaged.
// number is the number of the damaged entry. If no entry can be read, the result has only number and the geometry of
// this store. The epoch of the result is at least the epoch in the Binding.
func (s *Sender) beforeDamage(ctx context.Context, number uint64) (head remote.Position, err error) {
	if head, err = remote.BeforeDamage(ctx, s.remote, number); head.Number == 0 { // nothing else is kept
		head = remote.Position{Number: number, Geometry: s.source.Past().Geometry}
	}
	head.Epoch = max(head.Epoch, s.bound().Epoch)
	return head, err
}

// ownDamage returns nil if this sender may begin an epoch after a damaged newest entry, in one of two cases. In the
// first case its user has decided to supersede that entry (Binding.Follows). In the second case this sender has
// appended that entry: head, the end of the readable entries, has the sender's epoch, and is before the position in
// wal/sent. Otherwise another machine may have begun an epoch with the damaged entry, and the error is a
// *DamagedHeadError with damage as its reason.
func (s *Sender) ownDamage(b Binding, head remote.Position, damage error) error {
	// The mark is valid even if the log does not continue from it.
	sent, ok, _ := s.source.Past().Sent(s.source.Durable())
	if b.Follows != (Seen{}) || head.Epoch == b.Epoch && ok && head.At.LSN < sent.Mark.LSN {
		return nil
	}
	return &DamagedHeadError{Place: s.remote.Place(), Err: damage}
}

// mayFollow returns an error if this sender must not add an entry after head, the newest entry of the remote.
func (s *Sender) mayFollow(b Binding, head remote.Position) error {
	store := uuid.UUID(head.Geometry.UUID)
	begun := b.Request != uuid.Nil && head.Request == b.Request // by a request of this sender
	switch {
	case b.Follows != (Seen{}) && !begun && !b.Follows.identifies(&head):
		return &OvertakenError{Place: s.remote.Place(), Seen: b.Follows, Head: head}
	case head.Number == 0 && b.Epoch > 0:
		return &LostError{Place: s.remote.Place(), Want: b.Remote, Has: b.Remote}
	case head.Number == 0:
		return nil
	case head.Format > remote.Format: // never plain text into a sealed copy
		return fmt.Errorf("%w: %w", ErrStopped, remote.FormatError(s.remote.Place(), head.Format))
	case store != b.Store:
		return fmt.Errorf("%w: %w", ErrStopped,
			&remote.OtherStoreError{Place: s.remote.Place(), Has: store, Want: b.Store})
	case head.Epoch > b.Epoch && !begun:
		return &TakenError{Place: s.remote.Place(), Epoch: b.Epoch, Head: head}
	case head.Epoch < b.Epoch:
		return &LostError{Place: s.remote.Place(), Want: b.Remote, Has: b.Remote}
	}
	return nil
}

// adopt records the epoch of head as the sender's own: an earlier request of this sender has begun it, and the answer
// was lost.
func (s *Sender) adopt(ctx context.Context, head remote.Position) error {
	return s.begun(ctx, head.Epoch, head.Log)
}

// begin begins an epoch of the remote after head, its newest entry. The log with the ID id is sent in this epoch.
// reason becomes Status.Reason. If begin succeeds, it returns errAgain, so that the next attempt sends the pieces.
func (s *Sender) begin(ctx context.Context, head remote.Position, id past.ID, reason string) error {
	b := s.bound()
	log := s.source.Past()
	if b.Request == uuid.Nil {
		request, err := s.newID()
		if err != nil {
			return err
		}
		erase := b.Epoch > 0 && s.purged(log, b.Log)
		if err := s.rebind(ctx, func(b *Binding) {
			b.Request, b.Snapshot.Now = request, true
			b.Snapshot.erase(erase, math.MaxUint64) // begun finds out what is clean
		}); err != nil {
			return err
		}
		b.Request = request
	}
	base, err := s.source.Base(ctx)
	if err != nil {
		return err
	}
	if now, err := log.ID(); err != nil || now != id {
		return errors.Join(errAgain, err) // the base may be of the next log
	}
	a := &remote.Anchor{Follows: head.Number, Geometry: log.Geometry, Log: id.Epoch, At: base, Machine: b.Machine,
		Request: b.Request, Format: remote.Format, Time: s.o.Clock()}
	epoch, err := s.remote.Begin(ctx, a)
	if errors.Is(err, remote.ErrMoved) {
		return fmt.Errorf("%w: %w", errAgain, err)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.status.Began, s.status.Reason = a.Time, reason
	s.mu.Unlock()
	return s.begun(ctx, epoch, id.Epoch)
}

// begun records in the Binding that this sender has begun the epoch of the remote, for the epoch log of the store's
// log, and returns errAgain. It checks again whether the log was purged, because a purge may have ended after the
// request for the epoch was recorded.
func (s *Sender) begun(ctx context.Context, epoch, log uint64) error {
	b := s.bound()
	erase := b.Epoch > 0 && s.purged(s.source.Past(), b.Log)
	clean := segment.LSN(0)
	if erase {
		var err error
		if clean, err = cleanSince(ctx, s.source, b.Log); err != nil {
			return err
		}
	}
	s.known = past.Mark{}
	if err := s.rebind(ctx, func(b *Binding) {
		b.Epoch, b.Log, b.Request, b.Follows, b.Recipients = epoch, log, uuid.Nil, Seen{}, s.o.Recipients
		if b.Purged.Log <= log {
			b.Purged = Gathered{}
		}
		b.Snapshot.Now = true
		b.Snapshot.erase(erase, clean)
	}); err != nil {
		return err
	}
	return errAgain
}

// reason returns a text for messages: why the epoch of the log after the given one was begun, or that the reason is
// unknown.
func (s *Sender) reason(log *past.Log, epoch uint64) string {
	list, err := log.Endings()
	if err != nil {
		return past.Unknown.String()
	}
	for _, e := range list {
		if e.Epoch > epoch {
			return e.Reason.String()
		}
	}
	return past.Unknown.String()
}

// purged reports whether a purge has begun an epoch of the log after the given one. It also returns true if that is
// not known.
func (s *Sender) purged(log *past.Log, epoch uint64) bool {
	list, err := log.Endings()
	if err != nil {
		return true
	}
	for _, e := range list {
		if e.Epoch > epoch && (e.Reason == past.Purged || e.Reason == past.RecordLost) {
			return true
		}
	}
	return false
}

// ship appends to the remote the part of the log from head.At to durable, piece by piece. It records in wal/sent up to
// which position the remote has the log.
func (s *Sender) ship(ctx context.Context, b Binding, id past.ID, head remote.Position, durable segment.LSN) error {
	log := s.source.Past()
	sent := past.Mark{}
	// An epoch that was begun again, or a remote that has lost its newest pieces, needs more of the log than before.
	if before, ok, err := log.Sent(durable); ok && err == nil && before.Mark.LSN > head.At.LSN {
		if err := s.record(log, past.ID{Store: b.Store, Epoch: b.current()}, head.At); err != nil {
			return err
		}
	}
	err := func() error {
		for piece, err := range log.Pieces(ctx, head.At, durable) {
			if gap := (*past.GapError)(nil); errors.As(err, &gap) {
				return s.gap(ctx, id, gap)
			}
			if err != nil {
				return err
			}
			request, err := s.newID()
			if err != nil {
				return err
			}
			p := &remote.Piece{From: piece.From, To: piece.To, Epoch: b.Epoch, Machine: b.Machine, Request: request,
				Format: remote.Format, Time: s.o.Clock(), Bytes: bytes.Clone(piece.Bytes)}
			// Not cancelled: the outcome would be unknown, and the next Append might meet this one.
			if err := s.remote.Append(context.WithoutCancel(ctx), p); errors.Is(err, remote.ErrMoved) {
				return fmt.Errorf("%w: %w", errAgain, err)
			} else if err != nil {
				s.known = past.Mark{}
				return err
			}
			s.known, sent = p.To, p.To
		}
		return nil
	}()
	if err == nil && sent.LSN == 0 {
		sent = head.At
	}
	if sent.LSN > 0 {
		err = errors.Join(err, s.record(log, past.ID{Store: b.Store, Epoch: b.current()}, sent))
		s.mu.Lock()
		s.status.Sent = sent
		s.mu.Unlock()
	}
	if err == nil {
		s.mu.Lock()
		s.status.Durable = durable
		s.mu.Unlock()
	}
	return err
}

// record writes mark, the position up to which the remote has the log, to wal/sent. It writes nothing if wal/sent
// already has this position.
func (s *Sender) record(log *past.Log, id past.ID, mark past.Mark) error {
	b := s.bound()
	tag := b.Tag()
	before, ok, err := log.Sent(mark.LSN)
	if ok && err == nil && before.ID == id && before.Mark == mark && before.Copy == tag {
		return nil
	}
	err = log.SetSent(id, mark, tag, s.o.Clock(), s.o.FileMode)
	if errors.Is(err, past.ErrBegunAgain) {
		return nil // the next attempt begins an epoch
	}
	return err
}

// gap handles a part of the log that cannot be read. If a snapshot that is begun now does not need that part, gap
// begins a new epoch after it. Otherwise it returns an error.
func (s *Sender) gap(ctx context.Context, id past.ID, gap *past.GapError) error {
	log := s.source.Past()
	if now, err := log.ID(); err != nil || now != id {
		return errors.Join(errAgain, err) // the log has ended meanwhile, for a recorded reason
	}
	base, err := s.source.Base(ctx)
	if err != nil {
		return err
	}
	if gap.From >= base.LSN {
		return gap // a snapshot would need that part, too
	}
	for _, err := range log.Pieces(ctx, base, s.source.Durable()) {
		if err != nil {
			return err
		}
		break
	}
	head, err := s.remote.Head(ctx)
	if err != nil {
		return err
	}
	if err := s.mayFollow(s.bound(), head); err != nil {
		return err
	}
	s.mu.Lock()
	s.status.Gap = &Gap{From: gap.From, To: gap.To, Time: s.o.Clock(), Err: gap.Err}
	s.mu.Unlock()
	return s.begin(ctx, head, id, gap.Error())
}

func (s *Sender) newID() (uuid.UUID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uuid.NewRandomFromReader(s.o.Random)
}

// Run sends the log until ctx ends, and returns the error of ctx. It also ends if a Round returns an error that matches
// ErrStopped, and returns that error. After temporary errors it waits before it tries again, each time longer, at most
// a minute. The caller must make sure that no other process of the machine runs a sender of the store.
func (s *Sender) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var maintaining sync.WaitGroup
	defer maintaining.Wait()
	defer cancel()
	maintaining.Go(func() {
		for {
			pause := 10 * s.o.Every
			if err := s.Maintain(ctx); err != nil {
				pause *= 6 // Status has the error
			}
			if s.o.Sleep(ctx, pause) != nil || ctx.Err() != nil {
				return
			}
		}
	})
	for pause := s.o.Every; ; {
		err := s.Round(ctx)
		switch {
		case errors.Is(err, ErrStopped):
			return err
		case err != nil:
			pause = min(2*pause, max(time.Minute, s.o.Every))
		default:
			pause = s.o.Every
		}
		if err := s.o.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
