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

	"github.com/varve-db/varve/internal/errs"
)

// Two kernels on one folder (a container's and its host's, through different
// file systems) do not see each other's locks. The file owner holds the boot id
// of those who use the log and a heartbeat; another boot id with a young
// heartbeat refuses the open.
//
//	0  16 bytes boot id, 16 int64 heartbeat in Unix microseconds, 24 uint64 xxhash64 of both
const (
	ownerYoung     = 10 * time.Second
	HeartbeatEvery = 3 * time.Second // how often Heartbeat wants to be called
)

type owner struct {
	boot [2]uint64
	beat time.Time
}

func (l *FileLog) readOwner() (owner, bool) {
	f, err := l.o.FS.OpenFile(l.o.wal("owner"), os.O_RDONLY, 0)
	if err != nil {
		return owner{}, false
	}
	defer f.Close()
	var b [32]byte
	le := binary.LittleEndian
	if n, err := readFull(f, b[:], 0); err != nil || n < len(b) || xxhash.Sum64(b[:24]) != le.Uint64(b[24:]) {
		return owner{}, false
	}
	return owner{[2]uint64{le.Uint64(b[0:]), le.Uint64(b[8:])}, time.UnixMicro(int64(le.Uint64(b[16:])))}, true
}

// otherKernel waits out a young heartbeat of another boot: after a reboot
// nobody renews it. One that is renewed refuses.
func (l *FileLog) otherKernel(ctx context.Context) error {
	first, ok := l.readOwner()
	for ok && first.boot != l.host.Boot {
		age := l.o.Clock().Sub(first.beat)
		if age < 0 || age >= ownerYoung {
			return nil
		}
		if err := l.o.Sleep(ctx, min(time.Second, ownerYoung-age)); err != nil {
			return err
		}
		now, still := l.readOwner()
		if still && now != first {
			return &errs.LockError{Path: l.o.Dir, Err: errors.New("it is in use through another kernel (a container beside its host, or another machine): locks do not work between them")}
		}
		ok = still
	}
	return nil
}

// Heartbeat says that this log is in use, unless somebody has just said so.
func (l *FileLog) Heartbeat() error {
	if l.o.ReadOnly {
		return nil
	}
	now := l.o.Clock()
	if o, ok := l.readOwner(); ok && o.boot == l.host.Boot && now.Sub(o.beat) < HeartbeatEvery && !now.Before(o.beat) {
		return nil
	}
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
	b = le.AppendUint64(b, l.host.Boot[0])
	b = le.AppendUint64(b, l.host.Boot[1])
	b = le.AppendUint64(b, uint64(now.UnixMicro()))
	b = le.AppendUint64(b, xxhash.Sum64(b))
	_, err = f.WriteAt(b, 0)
	return err
}
