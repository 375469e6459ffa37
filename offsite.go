package varve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/offsite"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/dir"
	"github.com/varve-db/varve/remote/sealed"
	"github.com/varve-db/varve/remote/sender"
	"github.com/varve-db/varve/wal"
	walpast "github.com/varve-db/varve/wal/past"
)

// Offsite is the remote copy of a store: in a folder on another disk, or in a bucket. Every moment of the store can be
// restored from the copy: see Clone.
type Offsite struct{ st *Store }

// Offsite returns the remote copy of the store.
func (ad Admin) Offsite() Offsite { return Offsite(ad) }

// ClonedError reports that a store is a clone that was made from a remote copy. The clone is read-only until Take makes
// it the store that sends to this copy. ClonedError matches ErrPermission and ErrReadOnly.
type ClonedError struct{ Dir string }

// Error returns the message, in one line.
func (e *ClonedError) Error() string {
	return fmt.Sprintf("%s is a clone of a remote copy, to which another machine may still send: the clone is "+
		"read-only until memctl remote take makes this machine the one that sends", e.Dir)
}

// Unwrap makes the error match ErrPermission and ErrReadOnly.
func (e *ClonedError) Unwrap() []error { return []error{errs.ErrPermission, errs.ErrReadOnly} }

// mayWrite returns a *ClonedError if the store is a clone and the options would open it for writing.
func (o *Options) mayWrite(e *env.Env) error {
	if o.ReadOnly || o.cloned {
		return nil
	}
	switch _, err := e.FS.Stat(filepath.Join(e.Dir, filepath.FromSlash(places.Cloned))); {
	case err == nil:
		return &ClonedError{Dir: e.Dir}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
		return nil // none, or opening the store says what is wrong
	default:
		return err
	}
}

// OpenFolder opens the remote in the folder that a URL file:///… names. It can be used as Options.Remote.
func OpenFolder(ctx context.Context, text string) (remote.Remote, error) {
	path, err := FolderOf(text)
	if err != nil {
		return nil, err
	}
	return dir.Open(ctx, path, nil)
}

// CreateFolder creates a remote in the folder that a URL file:///… names, or opens the remote that the folder already
// has.
func CreateFolder(ctx context.Context, text string) (remote.Remote, error) {
	path, err := FolderOf(text)
	if err != nil {
		return nil, err
	}
	return dir.Create(ctx, path, nil)
}

// FolderOf returns the folder that a URL file:///… names.
func FolderOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "file" || u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Path == "" || u.Path == "/" {
		return "", fmt.Errorf("%w: the URL does not name a folder → use file:///PATH, with an absolute path",
			errs.ErrInvalid)
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	return filepath.Clean(filepath.FromSlash(path)), nil
}

// Place is the location of a store's remote copy.
type Place struct {
	URL   string
	Added time.Time
	Clone bool // the store is a clone, which sends nothing until it has taken the copy
}

// Place returns the place of the remote copy, as recorded on this machine. The error matches ErrNotFound if the store
// has no copy.
func (rc Offsite) Place(ctx context.Context) (Place, error) {
	p, err := rc.st.inner.Places().Load(ctx)
	return Place{URL: p.URL, Added: p.Added, Clone: p.Clone}, err
}

// following locks follow.lock, and waits for at most Options.LockWait. The process that holds this lock is the one that
// sends the log.
func (rc Offsite) following(ctx context.Context) (unlock func(), err error) {
	wait, cancel := context.WithTimeout(ctx, rc.st.inner.Engine.Env().LockWait)
	defer cancel()
	lock, err := rc.st.inner.Engine.Log().Processes().Follow(wait)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("%w: another process sends the log of this store: %w", errs.ErrLocked, err)
		}
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

// Add makes an empty remote the copy of the store, and sends the log and the first snapshot to it. After that, a
// process that has the store open sends what is committed, if its Options.Remote can open the URL. The URL is recorded
// in StateDir, and must not contain credentials.
func (rc Offsite) Add(ctx context.Context, r remote.Remote, url string) error {
	p := rc.st.inner.Places()
	switch now, err := p.Load(ctx); {
	case err == nil && now.URL == url && now.Sends() && now.Sealed:
		return fmt.Errorf("%w: the copy at %s is sealed (encrypted) → repeat the call with the recipients of the copy",
			errs.ErrInvalid, url)
	case err == nil && now.URL == url && now.Sends():
		return rc.Send(ctx, r) // which reports whether another machine has taken the copy meanwhile
	case err == nil:
		return fmt.Errorf("%w: the store already has a copy, at %s → memctl remote remove makes the store forget "+
			"that copy", errs.ErrInvalid, now.URL)
	case !errors.Is(err, errs.ErrInvalid) && !errors.Is(err, errs.ErrNotFound):
		return err
	}
	return rc.add(ctx, r, url, nil)
}

// add makes an empty remote the copy of a store that has no copy. If keys is not nil, the copy is sealed (encrypted)
// with them. If another process has sealed the copy with other keys meanwhile, the error matches ErrConflict.
func (rc Offsite) add(ctx context.Context, r remote.Remote, url string, keys *offsite.Keys) error {
	p := rc.st.inner.Places()
	unlock, err := rc.following(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := p.Load(ctx); err == nil { // another process was faster
		return fmt.Errorf("%w: the store already has a copy, at %s", errs.ErrInvalid, now.URL)
	}
	if err := rc.alone(ctx); err != nil {
		return err
	}
	if err := rc.st.inner.Engine.Log().Past().ForgetSent(); err != nil { // of the copy that this one replaces
		return err
	}
	if err := p.Remove(); err != nil { // of another folder, or left by an attempt that failed
		return err
	}
	if keys != nil {
		if err := p.SaveKeys(*keys); err != nil {
			return err
		}
	}
	e := rc.st.inner.Engine.Env()
	if r, err = rc.st.inner.OpenCopy(ctx, r, nil); err != nil {
		return err
	}
	if s, ok := r.(*sealed.Remote); ok != (keys != nil) || ok && !bytes.Equal(s.ChainKey(), keys.Chain) {
		return fmt.Errorf("the keys of the copy: %w by another process → repeat the command", errs.ErrConflict)
	}
	_, err = sender.Bind(ctx, r, p.Store, p.Keeper(), e.Rand())
	if errors.Is(err, remote.ErrMoved) {
		return fmt.Errorf("%w → the place already has a copy of this store: give an empty place, or continue that "+
			"copy with memctl remote take %s", err, url)
	}
	if err != nil {
		return err
	}
	if err := p.Save(offsite.Place{URL: url, Added: e.Clock().UTC(), Sealed: keys != nil}); err != nil {
		return err
	}
	if err := rc.sendNow(ctx, r); err != nil {
		return err
	}
	return rc.register(ctx, r)
}

// OtherCopyError reports that the log of a store is sent to a copy that this user has not added: another user has
// added the copy, or the store's folder was copied from elsewhere. The archive can keep the log for one copy only. The
// error matches ErrInvalid.
type OtherCopyError struct {
	Dir  string
	Sent uint64 // position up to which that copy has the log
}

// Error returns the message, in one line.
func (e *OtherCopyError) Error() string {
	return fmt.Sprintf("%s: %v: the log of the store is already sent to another copy, which has the log up to "+
		"position %d; that copy was added by another user, or before the folder was copied, and a store keeps its "+
		"log for one copy only → run memctl remote remove as that user, or here if nothing sends to that copy any "+
		"more", e.Dir, errs.ErrInvalid, e.Sent)
}

// Unwrap makes the error match ErrInvalid.
func (e *OtherCopyError) Unwrap() error { return errs.ErrInvalid }

// alone returns an *OtherCopyError if the log is already sent to a copy of another user, so that this user must not
// add a copy. The caller holds follow.lock.
func (rc Offsite) alone(ctx context.Context) error {
	if _, err := rc.st.inner.Places().Load(ctx); !errors.Is(err, errs.ErrNotFound) {
		return rc.claimed(ctx) // a copy was added for the folder that was here, or for the one before the move
	}
	log := rc.st.inner.Engine.Log()
	s, _, err := log.Past().Sent(log.Durable())
	if s.Mark.LSN == 0 && (err == nil || errors.Is(err, errs.ErrCorrupt)) { // no record, or a damaged one
		return nil
	}
	if s.Mark.LSN == 0 {
		return err
	}
	return &OtherCopyError{Dir: rc.st.inner.Engine.Env().Dir, Sent: s.Mark.LSN}
}

// claimed returns an *OtherCopyError if wal/sent is a record that this user has not made, and that is not about a copy
// at one of the given remotes. Another user may send to the copy that this user has added, after taking it: then the
// record is that user's. The caller holds follow.lock.
func (rc Offsite) claimed(ctx context.Context, remotes ...uuid.UUID) error {
	log := rc.st.inner.Engine.Log()
	sent, ok, _ := log.Past().Sent(log.Durable()) // the tag is valid even if the log does not continue there
	if !ok || sent.Copy == 0 {
		return nil
	}
	list, err := rc.st.inner.Places().Bindings(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(b sender.Binding) bool { return b.Owns(sent.Copy) }) ||
		slices.ContainsFunc(remotes, func(r uuid.UUID) bool { return sender.TagIsOf(sent.Copy, r) }) {
		return nil
	}
	return &OtherCopyError{Dir: rc.st.inner.Engine.Env().Dir, Sent: sent.Mark.LSN}
}

// register records this machine and its host name at the remote r, so that people can see which machines use the copy.
func (rc Offsite) register(ctx context.Context, r remote.Remote) error {
	b, err := rc.st.inner.Places().Keeper().Load(ctx)
	if err != nil {
		return err
	}
	e := rc.st.inner.Engine.Env()
	return r.Register(ctx, remote.Machine{ID: b.Machine, Name: e.FS.Host().Name, Seen: e.Clock().UTC()})
}

// sendNow sends everything that is durable to the remote r, which is already open, and saves a snapshot if one is due.
// The caller holds follow.lock.
func (rc Offsite) sendNow(ctx context.Context, r remote.Remote) error {
	src, err := rc.st.inner.SentSource(ctx)
	if err != nil {
		return err
	}
	o := rc.st.inner.Sending()
	o.Recipients = offsite.RecipientsOf(r)
	pl, err := rc.st.inner.Places().Load(ctx)
	if err != nil {
		return err
	}
	o.Erase = pl.Erase
	s, err := sender.New(ctx, r, src, rc.st.inner.Places().Keeper(), o)
	if err != nil {
		return err
	}
	if err := s.Round(ctx); err != nil {
		return err
	}
	if err := s.Maintain(ctx); err != nil {
		return err
	}
	return s.Round(ctx) // what was written meanwhile completes the snapshot
}

// Send sends everything that is durable now. If another process is sending and does not end within Options.LockWait,
// the error matches ErrLocked.
func (rc Offsite) Send(ctx context.Context, r remote.Remote) error {
	unlock, err := rc.following(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if r, err = rc.st.inner.OpenCopy(ctx, r, nil); err != nil {
		return err
	}
	return rc.sendNow(ctx, r)
}

// Remove makes the store forget its remote copy: nothing more is sent, and the archive no longer keeps log for the
// copy. The contents of the copy are not changed. If another process is sending and does not end within
// Options.LockWait, the error matches ErrLocked, and Remove can be repeated.
func (rc Offsite) Remove(ctx context.Context) error {
	p := rc.st.inner.Places()
	log := rc.st.inner.Engine.Log().Past()
	pl, err := p.Load(ctx)
	recorded := !errors.Is(err, errs.ErrNotFound)
	if !recorded {
		_, ok, _ := log.Sent(rc.st.inner.Engine.Log().Durable())
		if !ok {
			return err
		}
	}
	if err != nil && recorded && !errors.Is(err, errs.ErrInvalid) && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	if err == nil && !pl.Ending {
		pl.Ending = true
		if err := p.Save(pl); err != nil {
			return err
		}
	}
	unlock, err := rc.following(ctx)
	if err == nil {
		defer unlock()
		err = rc.forgetSent(ctx, recorded)
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return p.Remove() // a user who cannot write to the store has no archive to prune
}

// forgetSent removes wal/sent, the record of the position up to which the copy has the log. recorded means that this
// user has added a copy: then forgetSent does not remove the record of a copy that another user has added. The caller
// holds follow.lock.
func (rc Offsite) forgetSent(ctx context.Context, recorded bool) error {
	if other := (*OtherCopyError)(nil); recorded && errors.As(rc.claimed(ctx), &other) {
		return nil
	}
	return rc.st.inner.Engine.Log().Past().ForgetSent()
}

// Behind returns the newest position that the remote r has of the store's log, and the number of bytes of log that r
// does not have yet.
func (rc Offsite) Behind(ctx context.Context, r remote.Remote) (head remote.Position, bytes uint64, err error) {
	if r, err = rc.st.inner.OpenCopy(ctx, r, nil); err != nil {
		return head, 0, err
	}
	if head, err = r.Head(ctx); err != nil {
		return head, 0, err
	}
	durable := rc.st.inner.Engine.Log().Durable()
	return head, durable - min(durable, head.At.LSN), nil
}

// AheadError is the error of Take if the copy has entries that the store lacks. It matches ErrConflict.
type AheadError struct {
	Place   string
	Copy    uint64 // position at which the copy ends
	Durable uint64 // position at which the store ends
}

// Error returns the message, in one line.
func (e *AheadError) Error() string {
	return fmt.Sprintf("%s: the copy has entries that this store lacks: the copy ends at position %d, the log of the "+
		"store at %d: %v → clone the copy, or repeat the command with --discard: these entries are then only in "+
		"earlier moments of the copy", e.Place, e.Copy, e.Durable, errs.ErrConflict)
}

// Unwrap makes the error match ErrConflict.
func (e *AheadError) Unwrap() error { return errs.ErrConflict }

// Take makes the store in a folder the one that sends to a remote copy. A clone becomes writable. The machine that sent
// to the copy before stops sending; its store continues to work, without a copy. If the copy has entries that the store
// lacks and discard is not set, the error is an *AheadError. If discard is set, Take continues; these entries can then
// be restored only by cloning an earlier moment of the copy.
func Take(ctx context.Context, folder string, r remote.Remote, url string, discard bool, o *Options) (err error) {
	var opt Options
	if o != nil {
		opt = *o
	}
	opt.cloned, opt.MustExist, opt.NoBackground, opt.ReadOnly = true, true, true, false
	st, err := Open(ctx, folder, &opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	of := st.Admin().Offsite()
	unlock, err := of.following(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := of.claimed(ctx, r.ID()); err != nil {
		return err
	}
	if r, err = of.signing(ctx, r); err != nil {
		return err
	}
	if err := of.take(ctx, r, url, discard); err != nil {
		return err
	}
	p, e := st.inner.Places(), st.inner.Engine.Env()
	if err := p.Save(offsite.Place{URL: url, Added: e.Clock().UTC()}); err != nil {
		return err
	}
	if err := e.FS.Remove(filepath.Join(e.Dir, filepath.FromSlash(places.Cloned))); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := e.FS.SyncDir(filepath.Join(e.Dir, "wal")); err != nil {
		return err
	}
	return of.register(ctx, r)
}

// takes is the maximum number of attempts of Take. An attempt fails if another machine adds an entry to the copy after
// Take has read the newest entry.
const takes = 4

// take begins a new epoch at the remote r; from then on this store sends to r. take first records r as the location of
// the copy, so that a call that failed can be repeated without a URL. If this store must not take the copy, take
// restores the previous location and the previous record of it.
func (rc Offsite) take(ctx context.Context, r remote.Remote, url string, discard bool) (err error) {
	p, e := rc.st.inner.Places(), rc.st.inner.Engine.Env()
	before, err := p.Copy()
	if err != nil {
		return err
	}
	bound := false
	for range takes {
		b, err := rc.looked(ctx, r, url, discard)
		if err != nil {
			if bound { // nothing was superseded: the entry that was to be followed is no longer the newest one
				err = errors.Join(err, before.Restore())
			}
			return err
		}
		_, cerr := e.FS.Stat(filepath.Join(e.Dir, filepath.FromSlash(places.Cloned)))
		if err := p.Save(offsite.Place{URL: url, Added: e.Clock().UTC(), Clone: cerr == nil}); err != nil {
			return err
		}
		if err := p.Keeper().Save(ctx, b); err != nil {
			return errors.Join(err, before.Restore())
		}
		bound = true
		// No copy needs what the log had before: the new epoch begins with a snapshot.
		if err := rc.st.inner.Engine.Log().Past().ForgetSent(); err != nil {
			return err
		}
		overtaken := (*sender.OvertakenError)(nil)
		if err = rc.sendNow(ctx, r); !errors.As(err, &overtaken) {
			return err
		}
	}
	return errors.Join(err, before.Restore())
}

// looked reads the newest entry of the remote r. It returns the record (sender.Binding) with which this store can send
// to r, provided that this entry is still the newest one. If discard is not set and the copy has entries that the
// store lacks, looked returns an error.
func (rc Offsite) looked(ctx context.Context, r remote.Remote, url string, discard bool) (b sender.Binding, err error) {
	p, e, log := rc.st.inner.Places(), rc.st.inner.Engine.Env(), rc.st.inner.Engine.Log()
	head, err := r.Head(ctx)
	follows := sender.Seen{Number: head.Number, Epoch: head.Epoch, At: head.At}
	if errors.Is(err, errs.ErrCorrupt) && head.Number > 0 {
		if !discard {
			return b, fmt.Errorf("the newest entry of the copy is damaged and cannot be read → make a store of the "+
				"readable part with memctl clone, or begin the copy again with memctl remote take --discard: %w", err)
		}
		follows = sender.Seen{Number: head.Number}
		head, err = remote.BeforeDamage(ctx, r, head.Number)
		if _, ok := r.(*sealed.Remote); err == nil && !ok { // a sealed copy must not continue in plain text
			head.Format, err = remote.FormatOf(ctx, r)
		}
	}
	switch {
	case err != nil:
		return b, err
	case head.Number == 0:
		return b, fmt.Errorf("%s: %w: the place is empty → memctl remote add %s", r.Place(), remote.ErrNoRemote, url)
	case head.Format > remote.SealedFormat:
		return b, remote.FormatError(r.Place(), head.Format)
	case head.Format == remote.SealedFormat:
		return b, fmt.Errorf("%s: %w, and this store has no keys for it → make a clone with "+
			"memctl clone --identity FILE, then run memctl remote take in the clone",
			r.Place(), remote.ErrSealed)
	case uuid.UUID(head.Geometry.UUID) != p.Store:
		return b, &remote.OtherStoreError{Place: r.Place(), Has: head.Geometry.UUID, Want: p.Store}
	}
	sent, err := sender.PurgedOnly(log.Past(), head.Log) // the epoch that begins here has what was purged erased
	if err != nil {
		return b, err
	}
	err = log.Past().Continues(ctx, walpast.ID{Store: p.Store, Epoch: sent}, head.At)
	if err == nil && head.At.LSN > log.Durable() { // so far behind that the log has nothing to compare with
		err = walpast.ErrBegunAgain
	}
	if errors.Is(err, walpast.ErrBegunAgain) && discard {
		err = nil
	}
	if errors.Is(err, walpast.ErrBegunAgain) {
		return b, &AheadError{Place: r.Place(), Copy: head.At.LSN, Durable: log.Durable()}
	}
	if err != nil {
		return b, err
	}
	id, err := log.Past().ID()
	if err != nil {
		return b, err
	}
	machine, merr := e.UUID()
	request, rerr := e.UUID()
	b = sender.Binding{Format: 1, Store: p.Store, Remote: r.ID(), Machine: machine, Epoch: head.Epoch,
		Log: min(head.Log, id.Epoch), Request: request, Follows: follows}
	b.Snapshot.Now = true
	return b, errors.Join(merr, rerr)
}

// CloneOptions are the settings of Clone.
type CloneOptions struct {
	// At restores everything up to the last commit whose clock time is not after it; zero: the newest moment. A clone
	// of an earlier moment is always a fork.
	At time.Time
	// Fork makes an independent store, with a UUID and versions of its own. Without it the clone has the UUID and the
	// versions of the store, and is read-only until Take.
	Fork bool
	// URL is remembered in StateDir, for Take; without credentials.
	URL string
	// Unseal opens a sealed copy. Signers are the public keys of the machines that made it, as AddSealed has returned
	// them: data that another machine has signed is refused with *SignerError.
	Unseal  Unseal
	Signers []string
	// Known is a position, EPOCH:POSITION, that the copy is known to have reached: a copy that ends before this
	// position is refused. "": none is known. In a sealed copy, signed pieces or snapshots prove the position. With At,
	// it is not proven where an epoch before that of Known ended.
	Known string
	// Options are the options with which the new store is opened; ReadOnly and MustExist are ignored.
	Options *Options
	// Progress is called from time to time with the number of files written so far, and the total number.
	Progress func(done, total int64)
}

// CloneReport describes what Clone has made.
type CloneReport struct {
	Store    string    // UUID of the store that was cloned
	Position uint64    // position at which its log ends
	Time     time.Time // time of the last commit; zero: unknown
	Epoch    uint64    // epoch of the copy
	Fork     bool
	Memories int64
	// Damage lists the damaged or missing parts of the copy that were not needed: the clone is complete. Each error
	// matches ErrCorrupt or ErrTruncated.
	Damage []error
}

// Clone creates a store from a remote copy, in a folder that is missing or empty. Everything that Clone reads from the
// copy is verified before the folder can be opened as a store. If the copy does not have the requested moment, the
// error matches ErrNotFound. If damage of the copy prevents the clone, the error matches ErrCorrupt. If a snapshot is
// damaged and an older snapshot leads to the same moment, Clone uses the older one, and CloneReport.Damage lists the
// damage.
func Clone(ctx context.Context, r remote.Remote, to string, o *CloneOptions) (report CloneReport, rerr error) {
	if o == nil {
		o = &CloneOptions{}
	}
	var opt Options
	if o.Options != nil {
		opt = *o.Options
	}
	if err := opt.Validate(); err != nil {
		return report, err
	}
	to, err := target(to)
	if err != nil {
		return report, err
	}
	r, keys, err := o.opened(ctx, r)
	if err != nil {
		return report, err
	}
	opt.fill()
	opt.ReadOnly, opt.MustExist, opt.NoBackground, opt.cloned, opt.Remote = false, true, true, true, nil
	fork := o.Fork || !o.At.IsZero()
	at, parts := to, opt.environment(to)
	if fork { // the clone is an intermediate step
		if err := admitted(parts, to); err != nil {
			return report, err
		}
		head, err := r.Head(ctx)
		if err != nil && !errors.Is(err, errs.ErrCorrupt) { // older moments may be sound
			return report, err
		}
		step, err := offsite.NewStep(parts.System.FS, to, head.Geometry.UUID, parts.Self, parts.Rand(), opt.FileMode,
			opt.FolderMode)
		if err != nil {
			return report, err
		}
		defer func() { rerr = errors.Join(rerr, step.Remove()) }()
		at = step.Store()
	}
	t := offsite.Target{FS: vfs.Patient(vfs.Only(opt.env.System.FS, opt.StateDir, at), opt.LockWait), Dir: at,
		FileMode: opt.FileMode, FolderMode: opt.FolderMode, Self: parts.Self, Progress: o.Progress,
		Inline: parts.System.Inline}
	m, finish, err := offsite.Materialize(ctx, r, o.At, t)
	if err != nil {
		return report, err
	}
	if err := o.proven(ctx, r, &m); err != nil {
		return report, errors.Join(err, t.Discard(m.Store))
	}
	report = CloneReport{Store: m.Store.String(), Position: m.End.LSN, Time: m.Time, Epoch: m.Epoch, Fork: fork,
		Damage: m.Damage}
	// Before the mark of an unfinished folder is removed: the process may be killed in between, and then the folder
	// must not open to write, nor that of a fork, which has the same UUID until it is restored.
	cloned := filepath.Join(at, filepath.FromSlash(places.Cloned))
	err = vfs.WriteDurable(t.FS, cloned+".new", cloned, []byte("{\"format\": 1}\n"), opt.FileMode)
	if err == nil {
		err = finish()
	}
	if err != nil {
		return report, errors.Join(err, t.Discard(m.Store))
	}
	if fork {
		report.Memories, err = forked(ctx, at, to, &opt)
		return report, err
	}
	if report.Memories, err = settled(ctx, to, o.URL, keys, &opt); err != nil {
		err = errors.Join(err, t.Discard(m.Store)) // it was missing or empty
	}
	return report, err
}

// admitted returns an error if a folder is not empty or belongs to another user. A missing folder is no error.
func admitted(e *env.Env, dir string) error {
	names, err := vfs.Contents(e.System.FS, dir)
	if err != nil {
		return nil // none, or creating it says what is wrong
	}
	if len(names) > 0 {
		return fmt.Errorf("%s: %w: the folder is not empty (%s) → give the path of a new or an empty folder",
			dir, errs.ErrInvalid, names[0])
	}
	info, err := e.System.FS.Stat(dir)
	if err != nil {
		return err
	}
	return e.Self.Admit(dir, &info, true) // its mode does not matter: a new folder replaces it
}

// settled opens the clone in dir, which recovers the clone's log, completes its vectors, and verifies the clone. If url
// and o.StateDir are not empty, settled then records url, the URL of the remote copy, in StateDir, and also keys unless
// it is nil. It returns the number of memories.
func settled(ctx context.Context, dir, url string, keys *offsite.Keys, o *Options) (memories int64, err error) {
	st, err := Open(ctx, dir, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := st.inner.Vectors.Complete(ctx); err != nil {
		return 0, err
	}
	for f, ferr := range st.Admin().Verify(ctx, VerifyOptions{}) {
		switch {
		case ferr != nil:
			err = ferr
		case f.Severity != SeverityInfo && err == nil:
			err = fmt.Errorf("the clone is damaged: %s: %w", f.String(), errors.Join(f.Err, errs.ErrCorrupt))
		}
	}
	if err == nil && url != "" && o.StateDir != "" {
		if keys != nil {
			if err := st.inner.Places().SaveKeys(*keys); err != nil {
				return 0, err
			}
		}
		err = st.inner.Places().Save(offsite.Place{URL: url, Clone: true, Added: o.Clock().UTC()})
	}
	return st.Admin().Stats().Memories, err
}

// forked makes an independent store in the folder to. The source is the clone in the folder from: forked makes a
// packed backup beside this clone, and restores this backup. It returns the number of memories of the new store.
func forked(ctx context.Context, from, to string, o *Options) (memories int64, err error) {
	st, err := Open(ctx, from, o)
	if err != nil {
		return 0, err
	}
	packed := from + offsite.PackedSuffix
	_, err = st.Backup(ctx, packed, BackupOptions{Packed: true})
	if err = errors.Join(err, st.Close()); err != nil {
		return 0, err
	}
	open := *o
	open.cloned = false
	r, err := Restore(ctx, packed, to, &RestoreOptions{Options: &open})
	return r.Memories, err
}

// copyHealth returns what this machine knows of the store's remote copy: up to which position the copy has the log,
// and whether sending succeeds. The result is zero if there is no copy.
func (st *Store) copyHealth(ctx context.Context) (h CopyHealth) {
	if s, ok, err := st.inner.Engine.Log().Past().Sent(st.inner.Engine.Log().Durable()); ok {
		h = CopyHealth{Follows: true, Sent: s.Mark.LSN, At: s.Time, Behind: int64(s.Behind), Err: err}
	}
	st.offsiteHealth(ctx, &h)
	if h.Behind > 0 && !h.Success.IsZero() {
		h.Lag = max(0, st.inner.Engine.Env().Clock().Sub(h.Success))
	}
	return h
}

// offsiteHealth adds to h the state of the remote copy that this machine has recorded.
func (st *Store) offsiteHealth(ctx context.Context, h *CopyHealth) {
	p := st.inner.Places()
	pl, err := p.Load(ctx)
	if errors.Is(err, errs.ErrNotFound) {
		return
	}
	if err != nil {
		h.Follows, h.LastErr = true, err.Error()
		return
	}
	if !pl.Sends() {
		return
	}
	h.Follows, h.Place = true, pl.URL
	log := st.inner.Engine.Log()
	followed, _ := log.Processes().Followed()
	if s, ok := p.Status(); ok {
		h.Sending = followed && s.Sending && slices.ContainsFunc(log.Processes().All(), func(a wal.Attached) bool {
			return a.PID == s.PID
		})
		h.LastErr, h.stopped = s.Error, s.Stopped
		if s.Success != nil {
			h.Success = *s.Success
		}
	}
	if o := st.inner.Offsite; o != nil && h.LastErr == "" && o.Err() != nil {
		h.LastErr = o.Err().Error()
	}
	if followed && !h.Sending && h.LastErr == "" {
		h.LastErr = "a process of another user sends the log of this store to that user's copy"
	}
}
