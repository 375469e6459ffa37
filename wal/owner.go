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

// Two kernels on one folder (a container's and its host's, through different file systems) do not
// see each other's locks. The file owner has the boot id of the processes that use the log, and a
// heartbeat. If it has another boot id with a live heartbeat, the open is refused. Watching
// determines whether the heartbeat is live, because clocks differ; only one that is old by any
// clock is not watched. The last to leave clears the file.
//
//	0  16 bytes boot id, 16 int64 heartbeat in Unix microseconds, 24 uint64 xxhash64 of both
const (
	ownerOld       = time.Minute
	HeartbeatEvery = 3 * time.Second // how often Heartbeat must be called
	ownerWatch     = HeartbeatEvery + time.Second
	// A file that is being written reads as nothing: through another kernel a write is not one
	// step, and a program that truncates first does so. It is asked again before it counts as
	// saying nothing.
	ownerTries = 6
	ownerPause = 20 * time.Millisecond
)

// errTorn: the file is there, and says nothing that can be read.
var errTorn = errors.New("the file does not match its checksum")

type owner struct {
	boot [2]uint64
	beat time.Time
}

// steadyOwner reads the file until it is whole; ok is false when it says nothing.
func (l *FileLog) steadyOwner(ctx context.Context) (o owner, ok bool, err error) {
	for range ownerTries {
		if o, ok, err = l.readOwner(); !errors.Is(err, errTorn) {
			return o, ok, err
		}
		if err := l.o.Sleep(ctx, ownerPause); err != nil {
			return o, false, err
		}
	}
	return o, false, nil // a crash left it so
}

// readOwner reads the file; ok is false when it says nothing.
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

// otherKernel refuses when another kernel's processes use the log.
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
			Err: errors.New("the store is in use through another kernel (a container and its host, or another machine), and " +
				"locks do not work between kernels")}
	}
	return err
}

// Heartbeat records that this log is in use, unless a process has just recorded it.
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
			return fmt.Errorf("%s: the store's folder is gone: %w", name, err)
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
