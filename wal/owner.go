package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal/past"
)

// Two kernels on one folder (a container's and its host's, through different file systems) do not see each
// other's locks. So the file wal/owner has the boot id of the processes that use the log, and a heartbeat. If
// it has another boot id with a live heartbeat, the open is refused. Clocks differ, so Open watches whether
// the heartbeat changes; a heartbeat that is a minute off by this clock is considered dead without watching.
// The last process to close the log clears the file.
//
//	0  16 bytes boot id, 16 int64 heartbeat in Unix microseconds, 24 uint64 xxhash64 of both
const (
	ownerOld       = time.Minute
	HeartbeatEvery = 3 * time.Second // interval at which Heartbeat must be called
	ownerWatch     = HeartbeatEvery + time.Second
	// ownerTries is the number of attempts to read wal/owner as long as the file is invalid, and ownerPause is the
	// pause between two attempts. The file may be invalid only while it is being written: through another kernel a
	// write is not atomic, and a program may truncate the file first. An invalid file is ignored after the last
	// attempt.
	ownerTries = 6
	ownerPause = 20 * time.Millisecond
)

// errTorn means that wal/owner exists but is invalid.
var errTorn = errors.New("the file does not match its checksum")

type owner struct {
	boot [2]uint64
	beat time.Time
}

// steadyOwner reads wal/owner until the file is valid, but at most ownerTries times. ok is false if the file names no
// processes, or is still invalid after the last attempt.
func (l *FileLog) steadyOwner(ctx context.Context) (o owner, ok bool, err error) {
	for range ownerTries {
		if o, ok, err = l.readOwner(); !errors.Is(err, errTorn) {
			return o, ok, err
		}
		if err := l.o.Sleep(ctx, ownerPause); err != nil {
			return o, false, err
		}
	}
	return o, false, nil // a crash has left it like this
}

// readOwner reads wal/owner, which records the boot of the processes that use the log, and their last heartbeat. ok is
// false if the file is missing or records no boot. The error is errTorn if the file is invalid.
func (l *FileLog) readOwner() (o owner, ok bool, err error) {
	f, err := l.o.FS.OpenFile(l.o.wal("owner"), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return o, false, nil
	}
	if err != nil {
		return o, false, l.ioError("opening", l.o.wal("owner"), err)
	}
	defer f.Close()
	var b [32]byte
	le := binary.LittleEndian
	n, err := past.ReadFull(f, b[:], 0)
	if err != nil {
		return o, false, l.ioError("reading", l.o.wal("owner"), err)
	}
	if n < len(b) || xxhash.Sum64(b[:24]) != le.Uint64(b[24:]) {
		return o, false, errTorn
	}
	o = owner{[2]uint64{le.Uint64(b[0:]), le.Uint64(b[8:])}, time.UnixMicro(int64(le.Uint64(b[16:])))}
	return o, o.boot != [2]uint64{}, nil
}

// otherKernel returns an error if processes under another kernel, such as that of another machine, use the log.
func (l *FileLog) otherKernel(ctx context.Context) error {
	first, ok, err := l.steadyOwner(ctx)
	if err != nil || !ok || first.boot == l.host.Boot || l.o.Clock().Sub(first.beat).Abs() > ownerOld {
		return err
	}
	if err := l.o.Sleep(ctx, ownerWatch); err != nil {
		return err
	}
	now, ok, err := l.steadyOwner(ctx)
	if err == nil && ok && now != first {
		return &errs.LockError{Path: l.o.Dir,
			Err: errors.New("a process under another kernel uses the store (in a container or a virtual machine, or " +
				"on another machine), and locks do not work between kernels: close the store there first")}
	}
	return err
}

// Heartbeat records in wal/owner that this log is in use, unless a process has recorded this less than HeartbeatEvery
// ago.
func (ps Processes) Heartbeat() error {
	if ps.l.o.ReadOnly {
		return nil
	}
	if err := ps.l.Folder().InPlace(); err != nil {
		return err
	}
	now := ps.l.o.Clock()
	if o, ok,
		err := ps.l.readOwner(); err == nil && ok && o.boot == ps.l.host.Boot && now.Sub(o.beat) < HeartbeatEvery &&
		!now.Before(o.beat) {
		return nil
	}
	return ps.l.writeOwner(owner{ps.l.host.Boot, now})
}

func (l *FileLog) writeOwner(o owner) error {
	name := l.o.wal("owner")
	f, err := l.o.FS.OpenFile(name, os.O_RDWR|os.O_CREATE, l.o.FileMode)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: the store's folder no longer exists: %w", name, err)
		}
		return l.ioError("opening", name, err)
	}
	defer f.Close()
	b := make([]byte, 0, 32)
	le := binary.LittleEndian
	b = le.AppendUint64(b, o.boot[0])
	b = le.AppendUint64(b, o.boot[1])
	b = le.AppendUint64(b, uint64(o.beat.UnixMicro()))
	b = le.AppendUint64(b, xxhash.Sum64(b))
	if _, err = f.WriteAt(b, 0); err != nil {
		return l.ioError("writing", name, err)
	}
	return nil
}
