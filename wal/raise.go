package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/page"
	"github.com/varve-db/varve/wal/past"
)

// Features returns the features of the store that are raised and durable.
func (l *FileLog) Features() Features {
	if !l.shared.Mapped() || l.private.Load() {
		return l.required
	}
	return Features(l.shared.Features())
}

// Raise adds features to the features of the store. After Raise has returned nil, the features are durable, and all
// processes that write to the store know them. Features that the store already has are skipped.
//
// Raise waits until no process that does not know the features has the store open. If that takes longer than
// Options.LockWait, the error is a *errs.LockError that names these processes. Raise does not wait for processes that
// have the store open read-only. If such a process does not know a feature that readers must know, its next read fails.
// If such a process runs an older version of the program, its first read of something that it does not know fails.
//
// While Raise checks the list of processes, no process can open the store, for little more than a second at a time.
// Raise holds open.lock from this check to its end, so no process can attach in between. It writes in this order:
// wal/features; one slot of the checkpoint; the other slot; wal/shared. After the first slot is written, no program
// that does not know the features opens the store. If Raise is interrupted after it has written wal/features, the next
// recovery completes its work. The recovery may also do so if Raise has returned an error.
func (l *FileLog) Raise(ctx context.Context, f Features) error {
	if known, err := l.mayRaise(f); known || err != nil {
		return err
	}
	held, err := l.lockToRaise(ctx, f)
	if held == nil {
		return err // another writer was faster
	}
	defer l.unlock(roleOpen)
	defer held.Unlock()
	return l.raise(held, f)
}

// RaiseFlushing is like Raise, for the holder of flush.lock, but does not wait until other processes end. It returns
// false if a process that does not know one of the features has the store open or is opening it.
func (l *FileLog) RaiseFlushing(held *Held, f Features) (bool, error) {
	if err := held.proves(l); err != nil {
		return false, err
	}
	if known, err := l.mayRaise(f); known || err != nil {
		return known, err
	}
	ok, err := l.lockHeld()
	if !ok || err != nil {
		return false, err
	}
	l.took(roleOpen)
	defer l.unlock(roleOpen)
	if lacking, more := l.lacking(f); len(lacking) > 0 || more != "" {
		return false, nil
	}
	err = l.raise(held, f)
	return err == nil, err
}

// lockHeld takes open.lock for the holder of flush.lock. Elsewhere these two locks are taken in the other order, so
// lockHeld waits only for a limited time: until other raises, which may be waiting for flush.lock, have released
// open.lock. It returns false if it does not get the lock in this time.
func (l *FileLog) lockHeld() (bool, error) {
	ok, err := l.locks[roleOpen].TryLock(vfs.ModeExclusive)
	if err == nil && !ok && !l.o.Inline {
		ok, err = l.lockFor(context.Background(), roleOpen, vfs.ModeExclusive, 10*raiseTurns)
	}
	if err != nil {
		return false, l.ioError("locking", l.o.wal(roleNames[roleOpen]), err)
	}
	return ok, nil
}

// mayRaise reports whether the store already has the features. It returns an error if this process cannot raise
// them.
func (l *FileLog) mayRaise(f Features) (known bool, err error) {
	if l.o.ReadOnly {
		return false, errs.ErrReadOnly
	}
	if lacks := f &^ l.o.Known; lacks != 0 {
		return false, fmt.Errorf("adding the features %s to the store in %s: this program does not know %s: %w", f,
			l.o.Dir, lacks,
			errs.ErrInvalid)
	}
	return l.Features()&f == f, nil
}

// raise adds the features to those of the store. The caller holds open.lock and flush.lock.
func (l *FileLog) raise(_ *Held, f Features) error {
	if l.Features()&f == f {
		return nil // another writer was faster
	}
	if l.shared.Poison() == page.Damaged {
		return fmt.Errorf("adding the features %s to the store in %s: the log is damaged: run memctl repair: %w", f,
			l.o.Dir,
			errs.ErrReadOnly)
	}
	c, err := l.Checkpoint()
	if err != nil {
		return fmt.Errorf("adding the features %s to the store in %s: %w", f, l.o.Dir, err)
	}
	c.Features |= f | l.Features()
	if err := l.writeFeatures(c.Features); err != nil {
		return err
	}
	for range 2 {
		if err := l.putCheckpoint(c); err != nil {
			return err
		}
	}
	l.shared.AddFeatures(uint64(c.Features))
	l.o.Logger.Info("features were added to the store; programs that do not know the features can no longer write to "+
		"it", "raised",
		f.String(), "all", c.Features.String())
	return nil
}

// A raise of features checks the list of attached processes every raiseLooks. It holds open.lock for
// raiseHolds meanwhile, so that it ends even if processes come and go. Then it releases open.lock for
// raiseRests, because a process that stays may stay for long. A process that flushes may take long, too, so a
// raise waits for flush.lock for raiseTurns only. Only to try the lock is not enough, because flush.lock is never
// free while other processes wait for it.
const (
	raiseLooks = 10 * time.Millisecond
	raiseHolds = time.Second
	raiseTurns = 200 * time.Millisecond
	raiseRests = 100 * time.Millisecond
)

// lockToRaise takes open.lock when all attached processes know the features, and then flush.lock. If another process
// has raised the features in the meantime, it returns nil without an error.
func (l *FileLog) lockToRaise(ctx context.Context, f Features) (*Held, error) {
	wait, cancel := context.WithTimeout(ctx, l.o.LockWait)
	defer cancel()
	var lacking []Attached
	var more string
	for {
		if err := l.lock(wait, roleOpen, vfs.ModeExclusive); err != nil {
			if len(lacking) > 0 || more != "" {
				return nil, l.inTheWay(f, lacking, more, context.Cause(ctx))
			}
			if locked := (*errs.LockError)(nil); errors.As(err, &locked) {
				locked.Err = context.Cause(ctx) // the wait has ended, not ctx
			}
			return nil, err
		}
		if l.Features()&f == f {
			l.unlock(roleOpen)
			return nil, nil
		}
		flushing := false
		for range raiseHolds / raiseLooks {
			if lacking, more = l.lacking(f); len(lacking) == 0 && more == "" {
				held, err := l.flushToRaise(wait)
				if err != nil {
					l.unlock(roleOpen)
					return nil, err
				}
				if held != nil {
					return held, nil
				}
				flushing = true
				break
			}
			if err := l.o.Sleep(wait, raiseLooks); err != nil || wait.Err() != nil {
				break
			}
		}
		l.unlock(roleOpen)
		if err := l.o.Sleep(wait, raiseRests); err != nil || wait.Err() != nil {
			if flushing {
				return nil, &errs.LockError{Path: l.o.wal(roleNames[roleFlush]), Holder: l.holder(roleFlush),
					Err: context.Cause(ctx)}
			}
			return nil, l.inTheWay(f, lacking, more, context.Cause(ctx))
		}
	}
}

// flushToRaise waits for flush.lock, but only for the limited time that a raise may hold open.lock. If it does not get
// the lock in this time, it returns nil without an error.
func (l *FileLog) flushToRaise(ctx context.Context) (*Held, error) {
	if l.o.Inline {
		return l.TryLockFlush()
	}
	held, err := l.lockFor(ctx, roleFlush, vfs.ModeExclusive, raiseTurns)
	switch {
	case err != nil && ctx.Err() == nil:
		return nil, l.ioError("locking", l.o.wal(roleNames[roleFlush]), err)
	case !held:
		return nil, nil
	}
	l.took(roleFlush)
	return l.heldNow()
}

// lacking returns the attached processes that have not recorded that they know the features f. If there may be
// further processes that are not on the shared list, unlisted is a text about them; otherwise it is empty. The
// caller holds open.lock.
func (l *FileLog) lacking(f Features) (list []Attached, unlisted string) {
	all := l.listed()
	for _, a := range all {
		if a.slot == l.slot || a.Life == vfs.Dead {
			continue
		}
		if known, ok := l.shared.Said(a.slot); !ok || f&^Features(known) != 0 {
			list = append(list, a)
		}
	}
	others := l.shared.Unlisted()
	if l.slot == page.Unlisted {
		others--
	}
	if others > 0 || len(all) == page.Places {
		unlisted = fmt.Sprintf("perhaps more processes, because the list has room for only %d", page.Places)
	}
	return list, unlisted
}

func (l *FileLog) inTheWay(f Features, list []Attached, more string, cause error) error {
	var names []string
	var holder errs.Holder
	for _, a := range list {
		command := a.Command()
		if holder.PID == 0 {
			holder = errs.Holder{PID: a.PID, Command: command}
			if a.Elsewhere {
				holder = l.process(a.PID)
			}
		}
		name := a.String()
		if command != "" {
			name += " (" + command + ")"
		}
		names = append(names, name)
	}
	if more != "" {
		names = append(names, more)
	}
	err := fmt.Errorf("adding the features %s: these processes have the store open and do not know the features: %s: "+
		"end these processes, or restart them with this version",
		f, strings.Join(names, ", "))
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &errs.LockError{Path: l.o.Dir, Holder: holder, Err: err}
}

// admit returns an error if the store has features that this program does not know.
func (l *FileLog) admit(f Features) error { return f.Lacking(l.o.Known, l.o.Dir, l.o.ReadOnly) }

// still is like admit, for a process that already has the log open. The process that raised the features may not have
// seen all processes: a process may be missing from the shared list (see lacking), and read-only processes are never
// on the list.
func (l *FileLog) still() error { return l.admit(Features(l.shared.Features())) }

// settleFeatures writes the features of the store to wal/features and both slots of the checkpoint, if they lack any. A
// raise may have been interrupted, a slot may be damaged, or the checkpoint may be lost. A recovery calls
// settleFeatures after it has made the end of the log durable.
func (l *FileLog) settleFeatures(c Checkpoint) error {
	f := l.required
	if f == 0 {
		return nil
	}
	if noted, err := readFeatures(l.o.FS, l.o.Dir); err != nil || noted&f != f {
		if err := l.writeFeatures(f); err != nil {
			return err
		}
	}
	for range 2 {
		slots, _, err := CheckpointSlots(l.o.FS, l.o.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l.ioError("reading", filepath.Join(l.o.Dir, "checkpoint"), err)
		}
		if slots[0].carries(f) && slots[1].carries(f) {
			return nil
		}
		if err := l.putCheckpoint(c); err != nil {
			return err
		}
	}
	return nil
}

func (s *Slot) carries(f Features) bool { return s.Err == nil && s.Features&f == f }

// wal/features is a copy of the features besides the checkpoint, because a log can be opened by its
// segments, without its checkpoint, and segments do not have the features. It is written before the
// checkpoint. Only a recovery, a read-only process that replays the log by itself, and LockExclusive
// read it. So if features are in wal/features but not in the checkpoint, a recovery without other
// attached processes either finishes an interrupted raise or restores what was lost. The file does not
// exist before the first raise.
//
//	0  "VARVEFEA", 8 uint64 features, 16 uint64 xxhash64 of both
const (
	FeaturesName  = "features" // in wal/
	featuresMagic = "VARVEFEA"
	featuresSize  = 24
)

func (l *FileLog) writeFeatures(f Features) error {
	b := append(make([]byte, 0, featuresSize), featuresMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(f))
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
	tmp := l.o.wal(fmt.Sprintf("%d-features.new", l.host.PID)) // the next recovery removes it
	if err := vfs.WriteDurable(l.o.FS, tmp, l.o.wal(FeaturesName), b, l.o.FileMode); err != nil {
		return l.ioError("writing", l.o.wal(FeaturesName), err)
	}
	return nil
}

// readFeatures reads wal/features. If the file does not exist, the error matches fs.ErrNotExist.
func readFeatures(fsys vfs.FS, dir string) (Features, error) {
	f, err := fsys.OpenFile(filepath.Join(dir, "wal", FeaturesName), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [featuresSize]byte
	n, err := past.ReadFull(f, b[:], 0)
	if err != nil {
		return 0, err
	}
	le := binary.LittleEndian
	if n < len(b) || string(b[:8]) != featuresMagic || xxhash.Sum64(b[:16]) != le.Uint64(b[16:]) {
		return 0, &errs.CorruptionError{Path: "wal/" + FeaturesName, Offset: -1,
			Err: errors.New("the file does not match its checksum")}
	}
	return Features(le.Uint64(b[8:])), nil
}

// unknownFeatures returns the error for a store of which neither the checkpoint nor wal/features can be read. If such a
// store were opened as a store without features, a program that does not know the store's features could write to it.
// So no program opens it until a person has decided what to do.
func unknownFeatures(err error) error {
	return fmt.Errorf("neither slot of the checkpoint is valid, so the features of the store are unknown: remove "+
		"wal/%s, then open the store with the newest program version that has written to it: %w", FeaturesName, err)
}
