package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/wal/past"
)

func (r *Remote) entry(number uint64) string { return r.path("log", folderOf(number), nameOf(number)) }

// floor returns the number of the oldest entry that is kept; 1 if nothing was pruned.
func (r *Remote) floor() (uint64, error) {
	names, err := r.o.FS.ReadDir(r.path("floors"))
	if err != nil {
		return 0, vfs.Failed("reading", r.path("floors"), err)
	}
	floor := uint64(1)
	for _, name := range names {
		if n, ok := parseName(name, 16); ok {
			floor = max(floor, n)
		}
	}
	return floor, nil
}

// last returns the number of the newest entry, and the floor: the number of the oldest entry that is kept. The first
// number is 0 if there is no entry. The newest entry need not be durable. If the floor has changed during the search,
// last searches again, because a prune may have removed the entries that the search looked at.
func (r *Remote) last() (last, floor uint64, err error) {
	if floor, err = r.floor(); err != nil {
		return 0, 0, err
	}
	for {
		before := floor
		if last, err = r.look(floor); err != nil {
			return 0, 0, err
		}
		if floor, err = r.floor(); err != nil {
			return 0, 0, err
		}
		if floor == before {
			break
		}
	}
	if last < floor && (last > 0 || floor > 1) {
		return 0, 0, r.missing(floor)
	}
	r.mu.Lock()
	r.newest = last
	r.mu.Unlock()
	return last, floor, nil
}

// look returns the number of the newest entry. It first tries up to eight numbers, from the newest entry that it knows
// of. If these do not include the newest entry, look lists the folders. floor is the number of the oldest entry that
// is kept.
func (r *Remote) look(floor uint64) (last uint64, err error) {
	r.mu.Lock()
	last = r.newest
	r.mu.Unlock()
	for tries := 0; last >= floor && tries < 8; tries++ {
		if there, err := r.exists(last + 1); err != nil {
			return 0, err
		} else if !there {
			if there, err := r.exists(last); err != nil || there {
				return last, err
			}
			break
		}
		last++
	}
	return r.listed()
}

func (r *Remote) exists(number uint64) (bool, error) {
	_, err := r.o.FS.Stat(r.entry(number))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, vfs.Failed("reading", r.entry(number), err)
}

// listed returns the number of the newest entry, which it finds by listing the folders. It returns 0 if there is no
// entry.
func (r *Remote) listed() (uint64, error) {
	folders, err := r.o.FS.ReadDir(r.path("log"))
	if err != nil {
		return 0, vfs.Failed("reading", r.path("log"), err)
	}
	folders = slices.DeleteFunc(folders, func(name string) bool { _, ok := parseName(name, 13); return !ok })
	slices.Sort(folders)
	for _, folder := range slices.Backward(folders) {
		names, err := r.o.FS.ReadDir(r.path("log", folder))
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned
		}
		if err != nil {
			return 0, vfs.Failed("reading", r.path("log", folder), err)
		}
		last := uint64(0)
		for _, name := range names {
			if n, ok := parseName(name, 16); ok && folderOf(n) == folder {
				last = max(last, n)
			}
		}
		if last > 0 { // a writer that was killed leaves an empty folder
			return last, nil
		}
	}
	return 0, nil
}

func (r *Remote) missing(number uint64) error {
	return &errs.CorruptionError{Path: r.entry(number), Offset: -1, Err: fmt.Errorf("the entry is missing: %w",
		fs.ErrNotExist)}
}

// settle makes durable that the entry with this number exists: it syncs the folder of the entry's file. Once for each
// such folder, it also syncs the folder log/, which contains it.
func (r *Remote) settle(number uint64) error {
	folder := folderOf(number)
	r.mu.Lock()
	known := r.synced[folder]
	r.mu.Unlock()
	if !known {
		if err := r.o.FS.SyncDir(r.path("log")); err != nil {
			return vfs.Failed("syncing", r.path("log"), err)
		}
	}
	if err := r.o.FS.SyncDir(r.path("log", folder)); err != nil {
		return vfs.Failed("syncing", r.path("log", folder), err)
	}
	r.mu.Lock()
	r.synced[folder] = true
	r.mu.Unlock()
	return nil
}

// mostHole is the size of a piece in bytes above which readHead requires that the disk has stored at least half of the
// bytes. A sparse file takes no space at the place, but reading a piece from it would take memory.
const mostHole = 1 << 20

// readHead reads the head of the entry with this number. If all is set, it also returns the bytes of the entry.
func (r *Remote) readHead(number uint64, all bool) (h head, b []byte, err error) {
	name := r.entry(number)
	f, err := r.o.FS.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil, r.missing(number)
	}
	if err != nil {
		return h, nil, vfs.Failed("reading", name, err)
	}
	defer f.Close()
	var raw [entryHead]byte
	n, err := past.ReadFull(f, raw[:], 0)
	if err != nil {
		return h, nil, err
	}
	damaged := func(err error) error { return &errs.CorruptionError{Path: name, Offset: -1, Err: err} }
	h, err = decodeHead(raw[:n], r.id, number)
	if newer := (*errs.NewerError)(nil); errors.As(err, &newer) {
		newer.Path = name
		return head{}, nil, newer
	}
	if err != nil {
		return head{}, nil, damaged(err)
	}
	st, err := f.Stat()
	if err != nil {
		return head{}, nil, vfs.Failed("reading", name, err)
	}
	if uint64(st.Size) != entryHead+h.length {
		return head{}, nil, damaged(fmt.Errorf("the file has %d bytes, not %d", st.Size, entryHead+h.length))
	}
	if !all {
		return h, nil, nil
	}
	// A piece has no long runs of zeros: its payloads are compressed or encrypted.
	if n := vfs.Stored(f, entryHead, int64(h.length)); h.length > mostHole && n < int64(h.length)/2 {
		return head{}, nil, damaged(fmt.Errorf("the file has %d bytes, but the disk has only %d of them", h.length, n))
	}
	b = make([]byte, h.length)
	if n, err := past.ReadFull(f, b, entryHead); err != nil || n < len(b) {
		return head{}, nil, vfs.Failed("reading", name, errors.Join(err, fs.ErrInvalid))
	}
	return h, b, nil
}

// Head returns the newest entry. The entry is durable when Head returns.
func (r *Remote) Head(ctx context.Context) (remote.Position, error) {
	h, err := r.head(ctx)
	return h.position, err
}

// head returns the complete head of the newest entry, which is durable when head returns, or the zero head if there is
// no entry. If the newest entry is damaged, the error is an *errs.CorruptionError, and the result has only the number
// of the entry.
func (r *Remote) head(ctx context.Context) (h head, err error) {
	if err := r.checkIdentity(); err != nil {
		return h, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return h, err
		}
		last, _, err := r.last()
		if err != nil || last == 0 {
			return h, err
		}
		h, _, err = r.readHead(last, false)
		if errors.Is(err, fs.ErrNotExist) {
			if floor, ferr := r.floor(); ferr == nil && floor > last {
				continue // pruned meanwhile: there is a newer one
			}
		}
		if err != nil {
			return head{position: remote.Position{Number: last}}, err
		}
		return h, r.settle(last)
	}
}

// Wait blocks until there is an entry whose number is greater than beyond. It looks once a second.
func (r *Remote) Wait(ctx context.Context, beyond uint64) error {
	for {
		h, err := r.Head(ctx)
		if err != nil || h.Number > beyond {
			return err
		}
		if err := r.o.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// search returns the number of the first entry in [from, to) for which pred returns true, or to if there is no
// such entry. If pred returns true for an entry, pred must return true for all later entries. An entry with a
// damaged head is treated like the next entry.
func (r *Remote) search(ctx context.Context, from, to uint64, pred func(*head) bool) (uint64, error) {
	for from < to {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		mid := from + (to-from)/2
		probe, h, err := mid, head{}, error(nil)
		for ; probe < to; probe++ {
			if h, _, err = r.readHead(probe, false); !errors.Is(err, errs.ErrCorrupt) {
				break
			}
		}
		switch {
		case probe == to:
			to = mid
		case err != nil:
			return 0, err
		case pred(&h):
			to = mid
		default:
			from = probe + 1
		}
	}
	return from, nil
}

// pruned reports whether err means that the entry with this number was pruned: its file does not exist, and its number
// is below the floor.
func (r *Remote) pruned(number uint64, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	floor, ferr := r.floor()
	return ferr == nil && number < floor
}
